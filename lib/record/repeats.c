/* repeats.c - see repeats.h. Two 64-bit hashes are stored per record: of its place and of its
 * content (content.h). Among a million records the chance that two places have one hash is 3 in
 * 10^8. Two such records are refused, never merged, because their contents differ. A list per kind
 * names the members that are the place of a record. */
#include "lib/record/repeats.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/hash64.h"
#include "lib/record/content.h"
#include "lib/record/rec.h"

static const char *const of_generation[] = {"phase", "launch", "round", "seq", "id", NULL};
static const char *const of_metric[] = {"metric", NULL};
static const char *const of_quality[] = {"metric", "id", "seed", "summary", NULL};

/* Returns the members that are the place of a record of this kind; NULL: the kind has no place. */
static const char *const *place_of(const char *kind)
{
    return !strcmp(kind, "generation") ? of_generation
           : !strcmp(kind, "metric")   ? of_metric
           : !strcmp(kind, "quality")  ? of_quality
                                       : NULL;
}

/* 1: the member has the value that readers assume if the member is absent. */
static int is_usual(const json_t *record, const char *member)
{
    return !strcmp(member, "summary") ? json_is_false(json_object_get(record, member))
           : !strcmp(member, "phase") && rec_is(record, member, "timed");
}

static uint64_t hash_place(const json_t *record, const char *const *members)
{
    uint64_t h = content_of(json_object_get(record, "kind"));
    h = hash64_bits(
        h, content_of(json_object_get(record, rec_text(record, "point") ? "point" : "config")));
    h = hash64_bits(h, content_of(json_object_get(record, "workload")));
    for (; *members; members++)
        h = hash64_bits(h, content_of(is_usual(record, *members)
                                          ? NULL : json_object_get(record, *members)));
    return h ? h : 1;
}

/* Returns the entry of a place in a table of `cap` (a power of two), or the free entry for that
 * place. */
static struct repeats_seen *find(struct repeats_seen *seen, size_t cap, uint64_t place)
{
    size_t i = place & (cap - 1);
    while (seen[i].place && seen[i].place != place)
        i = (i + 1) & (cap - 1);
    return &seen[i];
}

/* Makes room for one more entry; at most three quarters of the table are in use. */
static void make_room(struct repeats *repeats)
{
    if (4 * (repeats->n + 1) <= 3 * repeats->cap)
        return;
    size_t cap = repeats->cap ? 2 * repeats->cap : 64;
    struct repeats_seen *larger = mem_zero(cap, sizeof *larger);
    for (size_t i = 0; i < repeats->cap; i++)
        if (repeats->seen[i].place)
            *find(larger, cap, repeats->seen[i].place) = repeats->seen[i];
    free(repeats->seen);
    repeats->seen = larger;
    repeats->cap = cap;
}

static int refuse(const json_t *record, struct err *e)
{
    const char *config = rec_text(record, "config"), *metric = rec_text(record, "metric");
    if (metric)
        return err_set(e, EXIT_BAD_DATA, "a second, different '%s' record of '%s' on the same "
                       "prompts", metric, config ? config : "?");
    return err_set(e, EXIT_BAD_DATA, "another answer in the same place of the same launch of '%s': "
                   "give each process its own --launch", config ? config : "?");
}

int repeats_take(struct repeats *repeats, const json_t *record, struct err *e)
{
    const char *const *members = place_of(rec_kind(record));
    if (!members)
        return 0;
    make_room(repeats);
    struct repeats_seen is = {hash_place(record, members), content_of_record(record)};
    struct repeats_seen *had = find(repeats->seen, repeats->cap, is.place);
    if (!had->place) {
        *had = is;
        repeats->n++;
        return 0;
    }
    if (had->content != is.content)
        return refuse(record, e);
    repeats->dropped++;
    return 1;
}

void repeats_free(struct repeats *repeats)
{
    free(repeats->seen);
    *repeats = (struct repeats){0};
}
