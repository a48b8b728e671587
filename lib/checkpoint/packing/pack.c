/* pack.c - writes a checkpoint with pruned and quantized matrices.
 *
 * The header of the new file depends only on shapes, so it is written first. Then each matrix is
 * read, quantized, compared with its codes, written and freed. Of a tensor that is not quantized,
 * the kept rows or columns are copied. */
#include "lib/checkpoint/packing/pack.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/record/json.h"

enum { CONFIG_MAX_BYTES = 4 << 20, SMALL_FILE_MAX = 128 << 20 };

struct packing {
    const struct checkpoint *c;
    struct config config; /* of the new checkpoint */
    const struct prune *prune; /* NULL: no pruning */
    enum dtype quant;
    struct pool *pool;
    struct pack_role *role;
    struct out out;
    struct tensor *list; /* tensors of the new file, in the order of the file */
    size_t n;
};

/* A tied head is the embedding: it has no tensor of its own. */
static int is_stored(const struct checkpoint *model, enum role role)
{
    return !(role == ROLE_HEAD && model->config.tied);
}

/* Bytes of a value of a tensor that is not quantized. */
static size_t value_bytes(const struct packing *packing, enum role role,
                          const struct tensor *tensor)
{
    size_t rows, cols;
    role_shape(&packing->c->config, role, &rows, &cols);
    return tensor->bytes / (rows * cols);
}

/* ---- list of the new tensors ---- */

/* Lists the new tensors of a role in a layer, and adds to the statistics of the role. */
static void list_role(struct packing *packing, enum role role, size_t layer)
{
    const struct tensor *tensor = checkpoint_tensor(packing->c, role, layer);
    struct pack_role *sum = &packing->role[role];
    size_t rows, cols, parts = 1;
    role_shape(&packing->config, role, &rows, &cols);
    enum dtype dtype = quantization_dtype(packing->quant, &packing->config, role, layer, DTYPE_F32);
    sum->dtype = sum->tensors && sum->dtype != dtype ? QUANT_MIXED : dtype;
    if (dtype != DTYPE_F32) {
        parts = quantization_parts(packing->list + packing->n, tensor->name, dtype, rows, cols);
    } else {
        struct tensor *new = &packing->list[packing->n];
        *new = *tensor;
        new->name = mem_text(tensor->name);
        new->bytes = rows * cols * value_bytes(packing, role, tensor);
        new->shape[0] = rows;
        new->shape[1] = new->rank > 1 ? cols : new->shape[1];
    }
    for (size_t i = 0; i < parts; i++)
        sum->packed_bytes += packing->list[packing->n + i].bytes;
    sum->source_bytes += tensor->bytes;
    sum->tensors++;
    sum->values += rows * cols;
    packing->n += parts;
}

static void list_all(struct packing *packing)
{
    const struct config *config = &packing->c->config;
    packing->list = mem_zero(PARTS * ROLE_COUNT * role_tensors_most(config), sizeof *packing->list);
    for (int role = 0; role < ROLE_COUNT; role++)
        for (size_t layer = 0; layer < role_tensors(config, (enum role)role) &&
                               is_stored(packing->c, (enum role)role);
             layer++)
            list_role(packing, (enum role)role, layer);
    for (int i = 0; i < 2; i++)
        if (packing->c->passed[i]) {
            packing->list[packing->n] = *packing->c->passed[i];
            packing->list[packing->n++].name = mem_text(packing->c->passed[i]->name);
        }
}

/* ---- quantizing a matrix ---- */

struct comparison {
    const struct mat_source *s;
    const struct codes *q;
    double *error, *power; /* [rows] */
};

static void compare_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct comparison *comparison = ctx;
    size_t K = comparison->s->cols;
    float *w = mem_alloc(2 * K * sizeof *w), *stored = w + K;
    (void)worker;
    for (size_t row = begin; row < end; row++) {
        comparison->s->floats(comparison->s, row, 1, w);
        quant_floats(comparison->q, K, row, 1, stored);
        for (size_t k = 0; k < K; k++) {
            double off = (double)w[k] - stored[k];
            comparison->error[row] += off * off;
            comparison->power[row] += (double)w[k] * w[k];
        }
    }
    free(w);
}

/* Adds the error and power of a matrix to the sums of its role. The sums are added row by row in a
 * fixed order, so they do not depend on threads. -1: a value is not finite. */
static int compare_matrix(const struct weight *weight, const struct mat_source *source,
                          const struct codes *codes, struct pool *pool, struct pack_role *sum,
                          struct err *e)
{
    double *error = mem_zero(2 * source->rows, sizeof *error);
    struct comparison comparison = {source, codes, error, error + source->rows};
    pool_run(pool, source->rows, 1, compare_rows, &comparison);
    for (size_t row = 0; row < source->rows; row++) {
        sum->error += comparison.error[row];
        sum->power += comparison.power[row];
    }
    free(error);
    if (isfinite(sum->power))
        return 0;
    return err_set(e, EXIT_BAD_DATA,
                   "%s: tensor %s: expected finite values, got a NaN or an infinity",
                   weight->checkpoint->folder,
                   checkpoint_tensor(weight->checkpoint, weight->role, weight->layer)->name);
}

int pack_compare(const struct weight *weight, enum dtype dtype, struct pool *pool,
                 struct pack_role *sum, struct err *e)
{
    struct mat_source source = checkpoint_source(weight);
    struct codes codes;
    void *memory = quant_make(&codes, &source, dtype, pool);
    int bad = compare_matrix(weight, &source, &codes, pool, sum, e);
    free(memory);
    return bad;
}

static void write_bytes(struct packing *packing, const void *bytes, size_t n)
{
    if (n)
        fwrite(bytes, 1, n, packing->out.f);
}

static void write_codes(struct packing *packing, const struct codes *codes,
                        const struct mat_source *source)
{
    const void *const part[PARTS] = {codes->code, codes->absmax, codes->scale, &codes->offset};
    for (int i = 0; i < PARTS; i++)
        write_bytes(packing, part[i],
                    dtype_part_bytes(codes->dtype, (enum codes_part)i, source->rows, source->cols));
}

/* ---- kept rows and columns of a matrix ---- */

struct kept {
    struct weight from;
    struct prune_cut cut;
};

/* A mat_source.floats() that reads rows of the kept part of a matrix. */
static void kept_floats(const struct mat_source *source, size_t first, size_t count, float *out)
{
    const struct kept *k = source->ctx;
    struct mat_source from = checkpoint_source(&k->from);
    float *row = mem_alloc(from.cols * sizeof *row);
    from.odd = source->odd;
    for (size_t i = 0; i < count; i++, out += source->cols) {
        from.floats(&from, prune_place(k->cut.rows, k->cut.unit, first + i), 1, row);
        for (size_t j = 0; j < source->cols; j++)
            out[j] = row[prune_place(k->cut.cols, k->cut.unit, j)];
    }
    free(row);
}

static struct mat_source kept_source(const struct packing *packing, const struct kept *k)
{
    struct mat_source source = {.floats = kept_floats, .ctx = k};
    if (!k->cut.rows && !k->cut.cols)
        return checkpoint_source(&k->from);
    role_shape(&packing->config, k->from.role, &source.rows, &source.cols);
    return source;
}

/* Copies the kept values in the dtype of the file. */
static void write_kept(struct packing *packing, const struct kept *k)
{
    const struct tensor *tensor = checkpoint_tensor(packing->c, k->from.role, k->from.layer);
    size_t rows, cols, from_rows, from_cols, size = value_bytes(packing, k->from.role, tensor);
    size_t piece = k->cut.unit * size;
    role_shape(&packing->config, k->from.role, &rows, &cols);
    role_shape(&packing->c->config, k->from.role, &from_rows, &from_cols);
    unsigned char *row = mem_alloc(cols * size);
    for (size_t i = 0; i < rows; i++) {
        const unsigned char *from =
            tensor->data + prune_place(k->cut.rows, k->cut.unit, i) * from_cols * size;
        for (size_t j = 0; k->cut.cols && j < cols / k->cut.unit; j++)
            memcpy(row + j * piece, from + k->cut.cols[j] * piece, piece);
        write_bytes(packing, k->cut.cols ? row : from, cols * size);
    }
    free(row);
}

static int write_role(struct packing *packing, enum role role, size_t layer, struct err *e)
{
    const struct tensor *tensor = checkpoint_tensor(packing->c, role, layer);
    struct pack_role *sum = &packing->role[role];
    struct kept k = {.from = {packing->c, role, layer}};
    enum dtype dtype = quantization_dtype(packing->quant, &packing->config, role, layer, DTYPE_F32);
    if (packing->prune)
        k.cut = prune_cut_of(packing->prune, role, layer);
    if (dtype == DTYPE_F32) {
        if (k.cut.rows || k.cut.cols)
            write_kept(packing, &k);
        else
            write_bytes(packing, tensor->data, tensor->bytes);
        return 0;
    }
    struct mat_source source = kept_source(packing, &k);
    struct codes codes;
    void *memory = quant_make(&codes, &source, dtype, packing->pool);
    int bad = compare_matrix(&k.from, &source, &codes, packing->pool, sum, e);
    write_codes(packing, &codes, &source);
    free(memory);
    return bad;
}

/* Writes every tensor; stops after a failed write, which out_commit reports. */
static int write_data(struct packing *packing, struct err *e)
{
    const struct config *config = &packing->c->config;
    for (int role = 0; role < ROLE_COUNT; role++)
        for (size_t layer = 0; layer < role_tensors(config, (enum role)role) &&
                               is_stored(packing->c, (enum role)role);
             layer++)
            if (!ferror(packing->out.f) && write_role(packing, (enum role)role, layer, e))
                return -1;
    for (int i = 0; i < 2; i++)
        if (packing->c->passed[i])
            write_bytes(packing, packing->c->passed[i]->data, packing->c->passed[i]->bytes);
    return safetensors_unchanged(packing->c->tensors, e);
}

static int write_tensors(struct packing *packing, const char *folder, struct err *e)
{
    json_t *metadata = packing->quant == QUANT_NONE
                           ? json_pack("{s:s}", "format", "pt") /* transformers requires it */
                           : json_pack("{s:s}", "quantization", quantization_name(packing->quant));
    char *path = mem_format("%s/model.safetensors", folder);
    int bad = safetensors_begin(&packing->out, path, packing->list, packing->n, metadata, e);
    free(path);
    json_decref(metadata);
    if (bad)
        return -1;
    if (!write_data(packing, e))
        return out_commit(&packing->out, e);
    out_abandon(&packing->out);
    return -1;
}

/* ---- config.json ---- */

static int write_config(const struct packing *packing, const char *folder, struct err *e)
{
    struct config packed = packing->config;
    struct out out;
    char *from = mem_format("%s/config.json", packing->c->folder);
    char *to = mem_format("%s/config.json", folder);
    json_t *j = json_file(from, CONFIG_MAX_BYTES, e);
    int bad = !j || out_open(&out, to, e);
    packed.quant = packing->quant;
    snprintf(packed.source_dtype, sizeof packed.source_dtype, "%s", checkpoint_dtype(packing->c));
    if (!bad) {
        family_set_shape(j, &packing->c->config, &packing->config);
        if (packing->quant != QUANT_NONE)
            json_object_set_new(j, "quantization", quantization_json(&packed));
        bad = json_dumpf(j, out.f, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) ||
              fputc('\n', out.f) == EOF;
        if (bad) {
            err_set(e, EXIT_IO, "%s: cannot write: %s", to, strerror(errno));
            out_abandon(&out);
        } else {
            bad = out_commit(&out, e);
        }
    }
    json_decref(j);
    free(from);
    free(to);
    return bad ? -1 : 0;
}

int pack_refuses(const struct checkpoint *model, struct err *e)
{
    if (!model->tensors)
        return err_set(e, EXIT_BAD_DATA, "%s: weights that are drawn cannot be packed",
                       model->config.name);
    if (model->tokenizer)
        return err_set(e, EXIT_BAD_DATA, "%s: expected a folder with config.json, got a GGUF file",
                       model->config.name);
    if (model->config.quant != QUANT_NONE)
        return err_set(e, EXIT_BAD_DATA,
                       "%s: is packed already (%s): take the checkpoint it was packed from",
                       model->folder, quantization_name(model->config.quant));
    return 0;
}

int pack_checkpoint(const struct checkpoint *model, enum dtype dtype, const struct prune *prune,
                    const char *folder, struct pool *pool, struct pack_role role[ROLE_COUNT],
                    struct err *e)
{
    struct packing packing = {.c = model, .config = prune ? prune->config : model->config,
                              .prune = prune, .quant = dtype, .pool = pool, .role = role};
    if (pack_refuses(model, e) || quantization_check(dtype, &packing.config, e))
        return -1;
    memset(role, 0, ROLE_COUNT * sizeof *role);
    list_all(&packing);
    int bad = write_tensors(&packing, folder, e) || write_config(&packing, folder, e);
    for (size_t i = 0; i < packing.n; i++)
        free(packing.list[i].name);
    free(packing.list);
    return bad ? -1 : 0;
}

/* ---- files beside the weights ---- */

static int copy_file(const char *name, const char *source, const char *folder, struct err *e)
{
    char *from = mem_format("%s/%s", source, name);
    char *to = mem_format("%s/%s", folder, name);
    struct buf text = {0};
    struct out out;
    int none = access(from, F_OK) && errno == ENOENT;
    int bad = !none && (file_read(from, SMALL_FILE_MAX, &text, e) || out_open(&out, to, e));
    if (!none && !bad) {
        fwrite(text.data, 1, text.len, out.f);
        bad = out_commit(&out, e);
    }
    buf_free(&text);
    free(from);
    free(to);
    return bad ? -1 : 0;
}

int pack_along(const struct checkpoint *model, const char *folder, struct err *e)
{
    static const char *const copied[] = {"tokenizer.json", "tokenizer_config.json",
                                         "special_tokens_map.json", "generation_config.json",
                                         "chat_template.jinja", "chat_template.json", "LICENSE",
                                         "training.ndjson"};
    int bad = 0;
    for (size_t i = 0; i < sizeof copied / sizeof *copied && !bad; i++)
        bad = copy_file(copied[i], model->folder, folder, e);
    return bad;
}

struct pack_role pack_sum(const struct pack_role role[ROLE_COUNT])
{
    struct pack_role all = {0};
    for (int i = 0; i < ROLE_COUNT; i++) {
        all.tensors += role[i].tensors;
        all.values += role[i].values;
        all.source_bytes += role[i].source_bytes;
        all.packed_bytes += role[i].packed_bytes;
        all.error += role[i].error;
        all.power += role[i].power;
    }
    return all;
}
