/* places.c - see places.h.
 *
 * A table with open addressing, at most three quarters full. Texts with equal hashes are compared,
 * so a hash collision does no harm. */
#include "lib/base/places.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/hash64.h"

static int is_at(const struct places *places, size_t place, const char *text, size_t n)
{
    const struct places_text *places_text = &places->v[place];
    return places_text->n == n && !memcmp(places->bytes.data + places_text->from, text, n);
}

/* Returns the slot of the text, or the free slot where the text belongs. */
static uint32_t *find(const struct places *places, const char *text, size_t n)
{
    size_t i = hash64_text(0, text, n) & (places->slots - 1);
    while (places->slot[i] && !is_at(places, places->slot[i] - 1, text, n))
        i = (i + 1) & (places->slots - 1);
    return &places->slot[i];
}

static void make_room(struct places *places)
{
    if (4 * (places->n + 1) <= 3 * places->slots)
        return;
    free(places->slot);
    places->slots = places->slots ? 2 * places->slots : 64;
    places->slot = mem_zero(places->slots, sizeof *places->slot);
    for (size_t i = 0; i < places->n; i++)
        *find(places, places->bytes.data + places->v[i].from, places->v[i].n) = (uint32_t)i + 1;
}

size_t places_of(struct places *places, const char *text, size_t n)
{
    if (n > UINT32_MAX || places->n > UINT32_MAX - 2)
        err_machine(__FILE__, __LINE__, "too many texts");
    make_room(places);
    uint32_t *slot = find(places, text, n);
    if (!*slot) {
        MEM_GROW(places->v, places->n, places->cap);
        places->v[places->n] = (struct places_text){places->bytes.len, (uint32_t)n};
        buf_put(&places->bytes, text, n);
        buf_char(&places->bytes, 0);
        *slot = (uint32_t)++places->n;
    }
    return *slot - 1;
}

int places_has(const struct places *places, const char *text, size_t n)
{
    return places->n && n <= UINT32_MAX && *find(places, text, n);
}

const char *places_text(const struct places *places, size_t place)
{
    return places->bytes.data + places->v[place].from;
}

void places_free(struct places *places)
{
    buf_free(&places->bytes);
    free(places->v);
    free(places->slot);
    *places = (struct places){0};
}
