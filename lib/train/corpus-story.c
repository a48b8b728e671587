/* corpus-story.c - short stories in simple English; see corpus.h. The prompt fixes person, object
 * and place, and the continuation uses the same facts. So the nouns, pronouns and places of the
 * continuation must agree with words far before them, and with each other: a hiding place guessed
 * in one sentence is where the object is found in the next. The key of a story is its (name,
 * object, place). The part of a story is decided by the hash of this key and by the hash of the
 * whole prompt, which must agree. */
#include "lib/train/corpus.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const girls[] = {"Mia", "Anna", "Ruth", "Clara", "Ida", "Nora", "Eva", "Lily",
                                    "Rosa", "Jane", "Ella", "Tina", "Vera", "Kate", "Emma", "Sue"};
static const char *const boys[] = {"Tom", "Ben", "Max", "Sam", "Paul", "Leo", "Adam", "Finn",
                                   "Karl", "Jack", "Otto", "Peter", "Hugo", "Will", "Oscar", "Dan"};
static const char *const things[] = {
    "kite", "ball", "drum", "book", "hat", "scarf", "lamp", "key", "ring", "boat", "bell", "cup",
    "basket", "blanket", "map", "coin", "doll", "whistle", "flute", "shell", "feather", "button",
    "box", "mirror", "clock", "brush", "glove", "bag", "candle", "spoon"};
static const char *const kinds[] = {"red", "blue", "green", "yellow", "white", "black", "brown",
                                    "silver", "old", "new", "little", "shiny", "orange", "tiny"};
static const char *const places[] = {
    "in the garden", "at the market", "by the river", "on the beach", "near the old mill",
    "in the forest", "on the farm", "in the park", "at the school", "by the lake", "on the hill",
    "near the bridge", "in the village", "at the harbor", "in the yard", "near the station",
    "in the valley", "by the pond"};
static const char *const spots[] = {
    "under the bench", "behind the wall", "in the hollow tree", "beside the gate",
    "under the dry leaves", "in the tall grass", "behind the shed", "in the wooden box",
    "under the old cart", "on top of the fence", "between the stones", "near the well",
    "behind the door", "in the cold water", "under the apple tree"};
static const char *const foods[] = {"bread", "soup", "cake", "cheese", "honey", "corn", "pie",
                                    "fish", "rice", "jam", "meat", "pudding"};
static const char *const beasts[] = {"dog", "cat", "bird", "rabbit", "fox", "goat", "duck",
                                     "horse", "mouse", "owl", "lamb", "hen"};
static const char *const pets[] = {"Dot", "Rex", "Pip", "Coco", "Star", "Sunny", "Bella", "Tiger",
                                   "Moss", "Nut"};
static const char *const kin[] = {"mother", "father", "aunt", "uncle", "sister", "brother",
                                  "grandmother", "grandfather"};
static const char *const jobs[] = {"baker", "farmer", "teacher", "doctor", "painter", "sailor",
                                   "singer", "tailor", "cook", "miller"};
static const char *const parts[] = {"morning", "afternoon", "evening"};
static const char *const skies[] = {"sunny", "cold", "windy", "warm", "rainy", "gray"};

/* The trouble of an animal, and the help for it. */
static const char *const troubles[][2] = {
    {"was hungry", "gave it [a bowl of {food}|some {food}]"},
    {"was cold", "put a warm [cloth|coat] around it"},
    {"had hurt its leg", "tied a soft cloth around its leg"},
    {"was thirsty", "brought it a bowl of water"},
    {"was stuck in the mud", "pulled it out of the mud with a rope"},
    {"could not find its mother", "carried it back to its mother"},
    {"was afraid of the wind", "took it into a [quiet|dark] barn"},
    {"was tied to a tree", "cut the rope with a knife"},
};

/* Slots whose values do not depend on the story. The alternatives are drawn again at each use. */
static const struct corpus_slot rules[] = {
    {"glad", "[happy|glad|very happy|proud|pleased]"},
    {"sad", "[sad|very sad|worried|unhappy]"},
    {"said", "[said|said|called|cried|answered]"},
    {"went", "[went|walked|ran|hurried]"},
    {"soon", "[Soon|Then|After a while|A little later|At last]"},
    {"when", "[One {sky} {part}|On a {sky} {part}]"},
    {"thanks", "[Thank you|Thanks], {a}!"},
    {"end", "[It had been a good {part}.|{a} never forgot that {part}.|That night {a} slept well.|"
            "From then on {a} and {b} were good friends.|They laughed all the way home.|"
            "{b} told everyone about it.|{a} smiled and went home.|]"},
    {"moral", "[It is good to have a friend.|A friend in need is a friend indeed.|"
              "Good work takes time.|Kind words cost nothing.|]"},
    {NULL, NULL}};

struct plot {
    const char *prompt, *rest;
};
static const struct plot plots[] = {
    /* lost and found */
    {"{When}, {a} lost {his} {obj} {at}. [It was a gift from {his} {kin}.|{He} was {sad}.|{He} had "
     "carried it all {part}.]",
     "First {he} looked {wrong}, but the {thing} was not there. {soon} {his} friend {b} came to "
     "help. \"Did you look {spot}?\" asked {b}. They {went} back {to}, and there it was, {spot}! "
     "[{a} was {glad}.|{a} took the {obj} and was {glad}.] {end}"},
    {"{When}, {a} found a~{obj} {spot}. \"Who has lost this {thing}?\" {he} asked everyone {at}.",
     "[The {job} did not know.|Nobody knew.] {soon} {he} met {b}, who was {sad}. \"That is my "
     "{thing}!\" {said} {b}. {a} gave {bhim} the {obj}, and {b} gave {him} some {food}. {end}"},
    {"{a} could not find {his} {obj}. \"[I had it|It was] {at} this {part},\" {he} told {his} "
     "{kin}.",
     "{His} {kin} said, \"Let us look {spot}.\" They {went} {to} [together|at once]. There sat a~"
     "{beast} {spot}, and it had the {thing}! When {a} gave it some {food}, the {beast} let the "
     "{obj} go. {He} was {glad}."},
    /* animals */
    {"{When}, {a} saw a~[small|young|little] {beast} {at}. It {trouble}.",
     "{a} felt sorry for the {beast}, so {he} {cure}. \"I will call you {pet},\" {he} said. "
     "[From then on|After that] {pet} {went} with {a} [every {part}|to school|everywhere]. "
     "{soon} the {beast} and {a} were good friends."},
    {"{b} had a~{beast} called {pet}. {When}, {pet} ran away and hid {at}.",
     "{b} called and called, but {pet} did not come. \"Maybe {bhis} {beast} is hungry,\" thought "
     "{a}. {He} put some {food} {spot} and waited. {soon} {pet} came out and ate the {food}. "
     "\"{thanks}\" {said} {b}, and {bhe} [held|took] {bhis} {beast} tight."},
    {"{a} and {b} heard a strange noise {at}. Something moved {spot}, and {b} was afraid.",
     "{a} took {his} {obj} and {went} closer. \"Be careful!\" {said} {b}. But it was only a~"
     "{beast} that {trouble}. {a} {cure}. After that {b} was not afraid [any more|of the {beast}]. "
     "{end}"},
    /* gifts and trade */
    {"It was {b}'s birthday. {a} wanted to give {bhim} a~{obj}, but {he} had no money.",
     "So {he} worked for the {job} {at} [all {part}|until {he} was tired]. The {job} gave {him} "
     "[three|five|six|ten] coins. {a} bought the {obj} and {went} to {b}. \"{thanks} This {thing} "
     "is [lovely|the best gift of all],\" {said} {b}. {moral}"},
    {"{a} the {job} had a~{obj} that everyone wanted. {When}, {b} came to see {him} {at}.",
     "\"I will give you my {beast} for the {thing},\" {said} {b}. {a} looked at the {beast} and "
     "shook {his} head. \"Then I will give you {food} every {part},\" said {b}. So {a} gave {bhim} "
     "the {obj}, and {he} ate {food} every {part}."},
    {"{When}, {a} went {to} to sell a~{obj}. {His} {kin} needed money for {food}.",
     "A~{job} looked at the {thing}, but he did not want it. {soon} {b} came by. \"How much is the "
     "{obj}?\" {bhe} asked. \"Only [four|seven|nine|two] coins,\" said {a}. {b} paid, and {a} "
     "brought {food} home to {his} {kin}. {They} were {glad}."},
    /* things that break, things that are made */
    {"{a} broke {his} {kin}'s {obj} {at}. {He} was {sad} and hid it {spot}.",
     "But {his} {kin} saw the {thing} {spot}. \"Who did this?\" {khe} asked. \"I did, and I am "
     "sorry,\" {said} {a}. {His} {kin} was not angry. Together they mended the {obj}, and {soonly} "
     "it was as good as new."},
    {"{b}'s {obj} was broken, and {bhe} was {sad}. {a} saw {bhim} {at}.",
     "\"I can mend it,\" said {a}, \"but I need [some string|some glue|a nail|a needle].\" {b} "
     "{went} to the {job} and asked for it. {a} worked [all {part}|for an hour]. {soon} the "
     "{thing} "
     "was as good as new. \"{thanks}\" {said} {b}. {moral}"},
    {"{a} wanted to make {food} for {b}, but there was no [salt|sugar|flour|butter] in the house.",
     "{He} {went} to the {job} {at}, who gave {him} a small bag of it. Then {a} cooked the {food} "
     "and put it on the table. When {b} tasted it, {bhe} smiled. \"This is the best {food} {at},\" "
     "{bhe} said. {end}"},
    /* quarrel, race, learning */
    {"{a} and {b} both wanted the {obj}. \"It is mine!\" {said} {a}. \"No, I saw it first!\" "
     "{said} "
     "{b}.",
     "They pulled until the {thing} fell {spot}. A~{job} who stood {at} saw it. \"{a} may have it "
     "today, and {b} tomorrow,\" [he|she] said. So {a} took the {obj} first, and the next day {he} "
     "gave it to {b}. {moral}"},
    {"{When}, {a} and {b} ran a race {at}. The winner would get a~{obj}.",
     "{a} was [fast|quick], and {soonly} {he} was in front. But then {b} fell and hurt "
     "{bhis} [foot|arm|knee]. {a} stopped and helped {bhim} up. They came last, but the {job} gave "
     "the {obj} to {a}. \"You have a good heart,\" [he|she] said."},
    {"{a} could not [swim|sing|ride a horse|dance|read]. {b} promised to teach {him} {at}.",
     "At first {it was hard}, and {a} wanted to stop. \"Try again,\" {said} {b}. {He} tried every "
     "{part} for a [week|month]. {soon} {he} could do it [well|better than {b}]! {His} {kin} was "
     "so happy that {khe} gave {him} a~{obj}."},
    /* weather, journeys, work */
    {"{When}, {a} was {at} with {his} {obj}. Suddenly [it began to rain|a storm came|snow began to "
     "fall].",
     "{a} {went} to the house of {b} the {job} and knocked. \"Come in and get [dry|warm],\" {said} "
     "{b}. They sat by the fire and ate {food}. When the sky was clear, {a} {went} home, but {he} "
     "forgot the {thing}. The next {part} {b} brought the {obj} to {him}."},
    {"{a} planted a seed {spot} {at}. \"Nothing will grow here,\" {said} {b}.",
     "But {a} gave it water every {part}. {soon} a~[tiny|small] green leaf came out of the ground. "
     "After a [month|year] there was a tall tree, and {he} hung {his} {obj} on it. \"You were "
     "right, {a},\" said {b}. {moral}"},
    {"{a} got a letter from {b}. It said, \"Come {to} this {part} and bring the {obj}.\"",
     "{a} took the {thing} and {went} there. At first {he} saw nobody. Then {b}, who had hidden "
     "{spot}, jumped up. \"Today is your birthday, {a}!\" {bhe} {said}. All {his} friends were "
     "there with {food}. {a} was so happy that {he} [danced|sang|laughed]."},
    {"{a} was a~{job} who lived {at}. {When}, {he} dreamed of a~{obj} {spot}.",
     "When {he} woke up, {he} {went} to look {spot}. There was no {thing}, but there was a~{beast} "
     "that {trouble}. {a} {cure}. The next day the {beast} came back, and it brought {him} "
     "a~{obj}! {He} {kept} it for ever."},
    {"The {job} had too much work, so {a} and {b} helped {at}. {a} carried the {food}, and {b} "
     "watched the {beast}.",
     "But {b} fell asleep, and the {beast} ate the {food}. \"Who was it?\" asked the {job}. {b} "
     "told the truth and was {sad}. The {job} laughed and gave {bhim} a~{obj}. \"Keep this {thing} "
     "and stay awake,\" [he|she] said. {end}"},
    /* fables */
    {"{a} the {beast} found some {food} {spot} {at}. A~{beast2} saw {him} and was hungry too.",
     "\"You sing so well, {a},\" said the {beast2}. \"Sing for me!\" {a} was {glad} and began to "
     "sing. So the {food} fell down, and the {beast2} ate it. [{soon} {a} sat {spot} without "
     "{food}.|\"Now I know better,\" {said} {a}.] {He} never sang for a~{beast2} again."},
    {"{a} the {beast} and {b} the {beast2} lived {at}. {b} had a~{obj}, and {a} had {food}.",
     "When winter came, {b} was hungry. \"Give me {food}, and you may use my {thing},\" {said} "
     "{b}. {a} gave {bhim} half of the {food}. [All winter|Every {part}] they sat {spot} with the "
     "{obj}. In spring the {beast} and the {beast2} were friends."},
};

struct cast {
    int girl, friend_girl, name, thing, place;
    const char *friend_name;
};

static struct cast cast_draw(struct rng *rng, int heldout, struct buf *key)
{
    for (;;) {
        struct cast cast = {.girl = (int)rng_below(rng, 2), .friend_girl = (int)rng_below(rng, 2),
                            .name = (int)rng_below(rng, COUNT(girls)),
                            .thing = (int)rng_below(rng, COUNT(things)),
                            .place = (int)rng_below(rng, COUNT(places))};
        const int friend_at = (int)rng_below(rng, COUNT(girls));
        const int tuple[3] = {cast.girl * 100 + cast.name, cast.thing, cast.place};
        if (cast.girl == cast.friend_girl && cast.name == friend_at) continue;
        cast.friend_name = cast.friend_girl ? girls[friend_at] : boys[friend_at];
        corpus_key("story", tuple, 3, key);
        if (corpus_is_heldout(tuple, 3) == heldout) return cast;
    }
}

/* A string of the list other than `taken`. */
static const char *pick_other(struct rng *rng, const char *const *list, size_t n, const char *taken)
{
    const char *x;
    do x = corpus_pick(rng, list, n);
    while (x == taken);
    return x;
}

#define PICK(r, list) corpus_pick(r, list, COUNT(list))

static void write_story(struct rng *rng, const struct cast *cast, struct corpus_record *out)
{
    const char *kind = PICK(rng, kinds), *thing = things[cast->thing], *at = places[cast->place];
    const char *spot = PICK(rng, spots), *beast = PICK(rng, beasts), *family = PICK(rng, kin);
    const char *const *trouble = troubles[rng_below(rng, COUNT(troubles))];
    const int aunt = strstr("mother aunt sister grandmother", family) != NULL;
    struct buf obj = {0}, to = {0};
    buf_format(&obj, "%s %s", kind, thing);
    buf_format(&to, "to %s", strstr(at, "the "));
    const struct corpus_slot slots[] = {
        {"a", cast->girl ? girls[cast->name] : boys[cast->name]}, {"b", cast->friend_name},
        {"he", cast->girl ? "she" : "he"}, {"his", cast->girl ? "her" : "his"},
        {"him", cast->girl ? "her" : "him"}, {"bhe", cast->friend_girl ? "she" : "he"},
        {"bhis", cast->friend_girl ? "her" : "his"}, {"bhim", cast->friend_girl ? "her" : "him"},
        {"khe", aunt ? "she" : "he"}, {"kind", kind}, {"thing", thing}, {"obj", obj.data},
        {"at", at}, {"to", to.data}, {"spot", spot},
        {"wrong", pick_other(rng, spots, COUNT(spots), spot)}, {"beast", beast},
        {"beast2", pick_other(rng, beasts, COUNT(beasts), beast)}, {"pet", PICK(rng, pets)},
        {"food", PICK(rng, foods)}, {"kin", family}, {"job", PICK(rng, jobs)},
        {"part", PICK(rng, parts)}, {"sky", PICK(rng, skies)}, {"trouble", trouble[0]},
        {"cure", trouble[1]}, {"they", "they"}, {"soonly", "[soon|before long]"},
        {"it was hard", "it was [hard|not easy]"}, {"kept", "[kept|loved]"}, {NULL, NULL}};
    const struct plot *plot = &plots[rng_below(rng, COUNT(plots))];
    corpus_expand(rng, plot->prompt, slots, rules, &out->text);
    buf_char(&out->reference, ' ');
    corpus_expand(rng, plot->rest, slots, rules, &out->reference);
    buf_free(&obj);
    buf_free(&to);
}

/* 1: the hash of the prompt selects the held-out part. The key alone does not separate the parts:
 * equal prompts without the object or the place could have keys of both parts. */
static int prompt_is_heldout(const struct corpus_record *out)
{
    uint32_t h = 0;
    for (const char *at = out->text.data; *at; at++)
        h = h * 31 + (unsigned char)*at;
    const int tuple[2] = {(int)(h >> 16), (int)(h & 0xffff)};
    return corpus_is_heldout(tuple, 2);
}

void corpus_story(struct rng *rng, int heldout, struct corpus_record *out)
{
    out->task = "story";
    buf_clear(&out->answer);
    int words, rest;
    do {
        const struct cast cast = cast_draw(rng, heldout, &out->key);
        buf_clear(&out->text);
        buf_clear(&out->reference);
        write_story(rng, &cast, out);
        rest = corpus_words(out->reference.data);
        words = corpus_words(out->text.data) + rest;
    } while (rest > 56 || words < 44 || words > 80 || prompt_is_heldout(out) != heldout);
}
