/* test-places.c - tests places.h, which numbers texts: equal texts get one number, any other text a
 * new one. */
#include "lib/base/mem.h"
#include "lib/base/places.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

int main(void)
{
    struct places p = {0};
    ok(places_of(&p, "", 0) == 0 && places_of(&p, "a", 1) == 1 && places_of(&p, "a\0", 2) == 2 &&
       places_of(&p, "a", 1) == 1 && places_of(&p, "ab", 1) == 1 && p.n == 3,
       "a text is its bytes and how many: an empty one, and one with a NUL, too");
    ok(!strcmp(places_text(&p, 1), "a") && !*places_text(&p, 0),
       "places_text() returns the text of a place");
    places_free(&p);

    enum { TEXTS = 20000, DRAWS = 200000 };
    struct rng r = {.seed = 3};
    size_t *place = mem_zero(TEXTS, sizeof *place), met = 0; /* plus 1 */
    int wrong = 0;
    for (int i = 0; i < DRAWS; i++) {
        char text[32];
        size_t which = rng_below(&r, TEXTS), n = (size_t)snprintf(text, sizeof text, "p%zu", which);
        size_t at = places_of(&p, text, n);
        if (!place[which])
            place[which] = ++met;
        wrong += at != place[which] - 1 || p.n != met || strcmp(places_text(&p, at), text);
    }
    ok(!wrong && met > TEXTS / 2, "%zu texts in random order (%d wrong)", met, wrong);
    places_free(&p);
    free(place);
    return tap_done();
}
