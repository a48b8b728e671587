/* latent_file.c - latents from a file; see latent_file.h. Texts are stored in the order of their
 * records. A record is checked completely before its text counts. latent_file_find() compares the
 * keys one by one; a batch searches once per text, which costs little beside a pass. */
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
    const json_t *value;
    if (json_array_size(list) != n)
        return err_set(e, EXIT_BAD_DATA, "%s: latents: the model reads %zu values, got %zu", where,
                       n, json_array_size(list));
    json_array_foreach(list, i, value) {
        double x = json_is_number(value) ? json_number_value(value) : (double)NAN;
        if (!(fabs(x) <= LATENT_MOST))
            return err_set(e, EXIT_BAD_DATA, "%s: latents[%zu]: expected a number from %g to %g, "
                           "got %s", where, i, -LATENT_MOST, LATENT_MOST, json_shown(value, shown));
        out[i] = (float)x;
    }
    return 0;
}

static int take_record(struct latent_file *file, const json_t *record, const char *where,
                       struct err *e)
{
    const json_t *list = json_object_get(record, "latents");
    const char *id;
    if (!json_is_array(list))
        return 0;
    if (json_text(record, where, "id", &id, e))
        return -1;
    while (file->cap_values < (file->n + 1) * file->each)
        MEM_GROW(file->values, file->cap_values, file->cap_values);
    float *values = file->values + file->n * file->each;
    if (read_values(values, list, file->each, where, e))
        return -1;
    uint64_t key = rng_derive(0, id);
    const float *earlier = latent_file_find(file, key);
    if (earlier && memcmp(earlier, values, file->each * sizeof *values))
        return err_set(e, EXIT_BAD_DATA, "%s: id '%.200s' has other latents in an earlier record; "
                       "give records of one point", where, id);
    if (earlier)
        return 0;
    MEM_GROW(file->key, file->n, file->cap_keys);
    file->key[file->n++] = key;
    return 0;
}

int latent_file_read(struct latent_file *file, const char *path, size_t each, struct err *e)
{
    *file = (struct latent_file){.each = each};
    if (filehash(path, FILEHASH_LARGE, file->sha256, e) < 0)
        return -1;
    struct rec_reader *in = rec_read_open(&path, 1, e);
    json_t *record;
    int got = in ? 1 : -1;
    while (got > 0 && (got = rec_read(in, &record, e)) > 0) {
        got = take_record(file, record, rec_where(in), e) ? -1 : 1;
        json_decref(record);
    }
    if (in)
        rec_read_close(in);
    if (!got && !file->n)
        return err_set(e, EXIT_BAD_DATA, "%s: no latents: expected records of gen-ltm "
                       "--keep-latents", path);
    return got;
}

void latent_file_free(struct latent_file *file)
{
    free(file->values);
    free(file->key);
    *file = (struct latent_file){0};
}

const float *latent_file_find(const struct latent_file *file, uint64_t key)
{
    for (size_t i = 0; i < file->n; i++)
        if (file->key[i] == key)
            return file->values + i * file->each;
    return NULL;
}
