/* latent_file.c - see latent_file.h. Texts are stored in the order of their records; a record is
 * checked completely before its text counts. A search compares the keys in order: a batch searches
 * once per text, which costs little beside a pass. */
#include "lib/latent/latent_file.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/record/filehash.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

static int read_values(float *out, const json_t *list, size_t n, const char *where, struct err *e)
{
    char shown[JSON_SHOWN];
    size_t i;
    const json_t *v;
    if (json_array_size(list) != n)
        return err_set(e, EXIT_BAD_DATA, "%s: latents: the model reads %zu values, got %zu", where,
                       n, json_array_size(list));
    json_array_foreach(list, i, v) {
        double x = json_is_number(v) ? json_number_value(v) : (double)NAN;
        if (!(fabs(x) <= LATENT_MOST))
            return err_set(e, EXIT_BAD_DATA, "%s: latents[%zu]: expected a number from %g to %g, "
                           "got %s", where, i, -LATENT_MOST, LATENT_MOST, json_shown(v, shown));
        out[i] = (float)x;
    }
    return 0;
}

static int take_record(struct latent_file *f, const json_t *r, const char *where, struct err *e)
{
    const json_t *list = json_object_get(r, "latents");
    const char *id;
    if (!json_is_array(list))
        return 0;
    if (json_text(r, where, "id", &id, e))
        return -1;
    while (f->cap_values < (f->n + 1) * f->each)
        MEM_GROW(f->values, f->cap_values, f->cap_values);
    float *values = f->values + f->n * f->each;
    if (read_values(values, list, f->each, where, e))
        return -1;
    uint64_t key = rng_derive(0, id);
    const float *earlier = latent_file_find(f, key);
    if (earlier && memcmp(earlier, values, f->each * sizeof *values))
        return err_set(e, EXIT_BAD_DATA, "%s: id '%.200s' has other latents in an earlier record; "
                       "give records of one point", where, id);
    if (earlier)
        return 0;
    MEM_GROW(f->key, f->n, f->cap_keys);
    f->key[f->n++] = key;
    return 0;
}

int latent_file_read(struct latent_file *f, const char *path, size_t each, struct err *e)
{
    *f = (struct latent_file){.each = each};
    if (filehash(path, FILEHASH_LARGE, f->sha256, e) < 0)
        return -1;
    struct rec_reader *in = rec_read_open(&path, 1, e);
    json_t *r;
    int got = in ? 1 : -1;
    while (got > 0 && (got = rec_read(in, &r, e)) > 0) {
        got = take_record(f, r, rec_where(in), e) ? -1 : 1;
        json_decref(r);
    }
    if (in)
        rec_read_close(in);
    if (!got && !f->n)
        return err_set(e, EXIT_BAD_DATA, "%s: no latents: expected records of gen-ltm "
                       "--keep-latents", path);
    return got;
}

void latent_file_free(struct latent_file *f)
{
    free(f->values);
    free(f->key);
    *f = (struct latent_file){0};
}

const float *latent_file_find(const struct latent_file *f, uint64_t key)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->key[i] == key)
            return f->values + i * f->each;
    return NULL;
}
