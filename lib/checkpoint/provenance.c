/* provenance.c - see provenance.h. An origin.json may come from anybody, so its indices are used
 * only after a check that they ascend and lie within the network. The file lists the removed parts,
 * because they are fewer than the kept parts. */
#include "lib/checkpoint/provenance.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/record/filehash.h"
#include "lib/record/json.h"

enum { ORIGIN_MAX_BYTES = 64 << 20, HEX = 65 };

/* ---- writing ---- */

json_t *provenance_make(const json_t *described, const char *quant)
{
    json_t *files = json_array(), *f;
    size_t i;
    json_array_foreach(json_object_get(described, "files"), i, f)
        json_array_append_new(files, json_pack("{s:O, s:O, s:O}", "name",
                                               json_object_get(f, "name"), "bytes",
                                               json_object_get(f, "bytes"), "sha256",
                                               json_object_get(f, "sha256")));
    return json_pack("{s:O, s:o, s:s, s:n}", "model", json_object_get(described, "model"), "files",
                     files, "quant", quant, "pruning");
}

/* A list of the numbers 0..n-1 that are not in kept[], which ascends. */
static json_t *list_removed(const size_t *kept, size_t n_kept, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0, k = 0; i < n; i++)
        if (k < n_kept && kept[k] == i)
            k++;
        else
            json_array_append_new(list, json_integer((json_int_t)i));
    return list;
}

void provenance_prune(json_t *origin, const struct config *config, const struct prune *prune,
                      const char *score, double heads, double ffn, json_t *calibration)
{
    const struct config *to = &prune->config;
    json_t *removed = json_array();
    for (size_t layer = 0; layer < config->layers; layer++)
        json_array_append_new(
            removed,
            json_pack(
                "{s:o, s:o, s:o}", "query",
                list_removed(prune->query + layer * to->heads, to->heads, config->heads), "key",
                list_removed(prune->key + layer * to->kv_heads, to->kv_heads, config->kv_heads),
                "unit", list_removed(prune->unit + layer * to->ffn, to->ffn, config->ffn)));
    json_object_set_new(origin, "pruning",
                        json_pack("{s:s, s:f, s:f, s:o?, s:o}", "score", score, "heads_share",
                                  heads, "ffn_share", ffn, "calibration", calibration, "removed",
                                  removed));
}

int provenance_write(const json_t *origin, const char *folder, struct err *e)
{
    char *path = mem_format("%s/" PROVENANCE, folder);
    char *text = json_dumps(origin, JSON_COMPACT | JSON_REAL_PRECISION(15));
    char *line = mem_format("%s\n", text ? text : "");
    int bad = !text || out_whole(path, line, strlen(line), e);
    free(line);
    free(text);
    free(path);
    return bad ? -1 : 0;
}

/* ---- reading ---- */

json_t *provenance_read(const char *folder, struct err *e)
{
    char *path = mem_format("%s/" PROVENANCE, folder);
    const char *quant;
    json_t *j = file_exists(path) ? json_file(path, ORIGIN_MAX_BYTES, e) : NULL;
    int bad = !j;
    if (!file_exists(path))
        err_set(e, EXIT_NO_INPUT, "%s: no such file: pack-model writes it, so pack-model did "
                "not make this folder", path);
    else if (j && (!json_is_object(j) || !json_is_array(json_object_get(j, "files"))))
        bad = err_set(e, EXIT_BAD_DATA, "%s: files: expected a list", path);
    else if (j)
        bad = json_text(j, path, "quant", &quant, e);
    free(path);
    if (!bad)
        return j;
    json_decref(j);
    return NULL;
}

static int refuse(const char *key, size_t layer, const char *why, struct err *e)
{
    return err_set(e, EXIT_BAD_DATA, PROVENANCE ": pruning of layer %zu: %s: %s", layer, key, why);
}

/* Reads the list `key` of layer `number`: row `number` of (*kept)[layers, *n_kept] = the numbers
 * 0..n-1 that are not in the list. The first layer allocates *kept and sets *n_kept, which must be
 * the same in all layers. */
static int read_kept(const json_t *layer, const char *key, size_t number, size_t layers, size_t n,
                     size_t **kept, size_t *n_kept, struct err *e)
{
    const json_t *list = json_object_get(layer, key);
    size_t gone = json_array_size(list), at = 0;
    if (!json_is_array(list) || gone >= n || (number && n - gone != *n_kept))
        return refuse(key, number, "expected a list that is as long in all layers and leaves some "
                      "parts of the source", e);
    *n_kept = n - gone;
    if (!number)
        *kept = mem_zero(layers * *n_kept, sizeof **kept);
    for (size_t i = 0, k = 0; i < n; i++) {
        const json_t *value = json_array_get(list, k);
        if (k < gone && json_is_integer(value) && json_integer_value(value) == (json_int_t)i)
            k++;
        else if (at < *n_kept)
            (*kept)[number * *n_kept + at++] = i;
        else
            return refuse(key, number, "expected ascending indices of parts that the source has",
                          e);
    }
    return 0;
}

/* -1: groups keep different numbers of query heads, or a kept query head reads a removed key
 * head. */
static int check_groups(const struct config *config, const struct prune *prune, struct err *e)
{
    size_t group = config->heads / config->kv_heads, H = prune->config.heads,
           K = prune->config.kv_heads;
    if (H % K)
        return refuse("query", 0, "expected the same number of heads of every group", e);
    for (size_t layer = 0; layer < config->layers; layer++)
        for (size_t h = 0; h < H; h++)
            if (prune->query[layer * H + h] / group != prune->key[layer * K + h / (H / K)])
                return refuse("query", layer, "expected the same number of heads of every group "
                              "that is kept", e);
    return 0;
}

int provenance_is_pruned(const json_t *origin)
{
    return json_is_object(json_object_get(origin, "pruning"));
}

int provenance_pruning(const json_t *origin, const struct config *config, struct prune *prune,
                       struct err *e)
{
    const json_t *pruning = json_object_get(origin, "pruning");
    const json_t *removed = json_object_get(pruning, "removed"), *layer;
    size_t number;
    int bad = 0;
    *prune = (struct prune){.config = *config};
    if (!json_is_object(pruning))
        return 0;
    if (json_array_size(removed) != config->layers)
        return err_set(e, EXIT_BAD_DATA, PROVENANCE ": pruning: removed: expected a list of %zu "
                       "layers", config->layers);
    json_array_foreach(removed, number, layer)
        bad = bad ||
              read_kept(layer, "query", number, config->layers, config->heads, &prune->query,
                        &prune->config.heads, e) ||
              read_kept(layer, "key", number, config->layers, config->kv_heads, &prune->key,
                        &prune->config.kv_heads, e) ||
              read_kept(layer, "unit", number, config->layers, config->ffn, &prune->unit,
                        &prune->config.ffn, e);
    if (!bad && !check_groups(config, prune, e))
        return 1;
    prune_free(prune);
    return -1;
}

/* The SHA-256 of the file `name` in a list of files, or NULL. */
static const char *find_hash(const json_t *files, const char *name)
{
    size_t i;
    json_t *f;
    json_array_foreach(files, i, f) {
        const char *text = json_string_value(json_object_get(f, "name"));
        if (text && !strcmp(text, name))
            return json_string_value(json_object_get(f, "sha256"));
    }
    return NULL;
}

int provenance_verify(const json_t *origin, const struct checkpoint *source, struct err *e)
{
    const json_t *files = json_object_get(origin, "files");
    char hex[HEX], *path;
    size_t n = 0;
    int bad = 0;
    for (; !bad && (path = checkpoint_file(source, n)); n++) {
        const char *want = find_hash(files, strrchr(path, '/') + 1);
        bad = filehash_anew(path, FILEHASH_LARGE, hex, e);
        if (!bad && (!want || strcmp(want, hex)))
            bad = err_set(e, EXIT_BAD_DATA, "%s: SHA-256 expected %.64s (" PROVENANCE "), got %s: "
                          "the source was changed since, or is another", path,
                          want ? want : "no such file", hex);
        free(path);
    }
    if (!bad && n != json_array_size(files))
        bad = err_set(e, EXIT_BAD_DATA, "%s: expected the %zu files that " PROVENANCE " lists, "
                      "got %zu", source->folder, json_array_size(files), n);
    return bad ? -1 : 0;
}

static int compare_file(const char *path, const char *folder, struct err *e)
{
    char path_hash[HEX], other_hash[HEX];
    char *other = mem_format("%s/%s", folder, strrchr(path, '/') + 1);
    int there = file_exists(other);
    int bad = filehash_anew(path, FILEHASH_LARGE, path_hash, e) ||
              (there && filehash_anew(other, FILEHASH_LARGE, other_hash, e));
    if (!bad && (!there || strcmp(other_hash, path_hash)))
        bad = err_set(e, EXIT_BAD_DATA, "%s: is not what its source gives when it is packed again "
                      "as " PROVENANCE " says", path);
    free(other);
    return bad ? -1 : 0;
}

int provenance_compare(const struct checkpoint *packed, const char *folder, struct err *e)
{
    char *path;
    int bad = 0;
    for (size_t i = 0; !bad && (path = checkpoint_file(packed, i)); i++) {
        bad = compare_file(path, folder, e);
        free(path);
    }
    return bad;
}
