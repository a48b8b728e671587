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

static int is_at(const struct places *p, size_t place, const char *text, size_t n)
{
    const struct places_text *t = &p->v[place];
    return t->n == n && !memcmp(p->bytes.data + t->from, text, n);
}

/* The slot of the text, or the free slot for it. */
static uint32_t *find(const struct places *p, const char *text, size_t n)
{
    size_t i = hash64_text(0, text, n) & (p->slots - 1);
    while (p->slot[i] && !is_at(p, p->slot[i] - 1, text, n))
        i = (i + 1) & (p->slots - 1);
    return &p->slot[i];
}

static void make_room(struct places *p)
{
    if (4 * (p->n + 1) <= 3 * p->slots)
        return;
    free(p->slot);
    p->slots = p->slots ? 2 * p->slots : 64;
    p->slot = mem_zero(p->slots, sizeof *p->slot);
    for (size_t i = 0; i < p->n; i++)
        *find(p, p->bytes.data + p->v[i].from, p->v[i].n) = (uint32_t)i + 1;
}

size_t places_of(struct places *p, const char *text, size_t n)
{
    if (n > UINT32_MAX || p->n > UINT32_MAX - 2)
        err_machine(__FILE__, __LINE__, "too many texts");
    make_room(p);
    uint32_t *slot = find(p, text, n);
    if (!*slot) {
        MEM_GROW(p->v, p->n, p->cap);
        p->v[p->n] = (struct places_text){p->bytes.len, (uint32_t)n};
        buf_put(&p->bytes, text, n);
        buf_char(&p->bytes, 0);
        *slot = (uint32_t)++p->n;
    }
    return *slot - 1;
}

int places_has(const struct places *p, const char *text, size_t n)
{
    return p->n && n <= UINT32_MAX && *find(p, text, n);
}

const char *places_text(const struct places *p, size_t place)
{
    return p->bytes.data + p->v[place].from;
}

void places_free(struct places *p)
{
    buf_free(&p->bytes);
    free(p->v);
    free(p->slot);
    *p = (struct places){0};
}
