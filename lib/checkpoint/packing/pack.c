/* pack.c - writes a checkpoint with pruned and quantized matrices.
 *
 * The header of the new file depends only on shapes, so it is written first. Then each matrix is
 * read, quantized, compared with its codes, written and freed. A tensor that is not quantized is
 * copied, or its kept rows or columns are. */
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
    struct tensor *list; /* of the new file, in its order */
    size_t n;
};

/* A tied head is the embedding: it has no tensor of its own. */
static int is_stored(const struct checkpoint *c, enum role r)
{
    return !(r == ROLE_HEAD && c->config.tied);
}

/* Bytes of a value of a tensor that is not quantized. */
static size_t value_bytes(const struct packing *p, enum role r, const struct tensor *t)
{
    size_t rows, cols;
    role_shape(&p->c->config, r, &rows, &cols);
    return t->bytes / (rows * cols);
}

/* ---- the list ---- */

/* Lists the new tensors of a role, and counts them. */
static void list_role(struct packing *p, enum role r, size_t layer)
{
    const struct tensor *t = checkpoint_tensor(p->c, r, layer);
    struct pack_role *sum = &p->role[r];
    size_t rows, cols, parts = 1;
    role_shape(&p->config, r, &rows, &cols);
    enum dtype d = quantization_dtype(p->quant, &p->config, r, layer, DTYPE_F32);
    sum->dtype = sum->tensors && sum->dtype != d ? QUANT_MIXED : d;
    if (d != DTYPE_F32) {
        parts = quantization_parts(p->list + p->n, t->name, d, rows, cols);
    } else {
        struct tensor *new = &p->list[p->n];
        *new = *t;
        new->name = mem_text(t->name);
        new->bytes = rows * cols * value_bytes(p, r, t);
        new->shape[0] = rows;
        new->shape[1] = new->rank > 1 ? cols : new->shape[1];
    }
    for (size_t i = 0; i < parts; i++)
        sum->packed_bytes += p->list[p->n + i].bytes;
    sum->source_bytes += t->bytes;
    sum->tensors++;
    sum->values += rows * cols;
    p->n += parts;
}

static void list_all(struct packing *p)
{
    const struct config *c = &p->c->config;
    p->list = mem_zero(PARTS * ROLE_COUNT * role_tensors_most(c), sizeof *p->list);
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_tensors(c, (enum role)r) && is_stored(p->c, (enum role)r); l++)
            list_role(p, (enum role)r, l);
    for (int i = 0; i < 2; i++)
        if (p->c->passed[i]) {
            p->list[p->n] = *p->c->passed[i];
            p->list[p->n++].name = mem_text(p->c->passed[i]->name);
        }
}

/* ---- one matrix ---- */

struct comparison {
    const struct mat_source *s;
    const struct codes *q;
    double *error, *power; /* [rows] */
};

static void compare_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct comparison *c = ctx;
    size_t K = c->s->cols;
    float *w = mem_alloc(2 * K * sizeof *w), *v = w + K;
    (void)worker;
    for (size_t r = begin; r < end; r++) {
        c->s->floats(c->s, r, 1, w);
        quant_floats(c->q, K, r, 1, v);
        for (size_t k = 0; k < K; k++) {
            double d = (double)w[k] - v[k];
            c->error[r] += d * d;
            c->power[r] += (double)w[k] * w[k];
        }
    }
    free(w);
}

/* Adds the matrix to the sums of its role, rows in order, so that threads do not matter. -1: a
 * value is not finite. */
static int compare_matrix(const struct weight *w, const struct mat_source *s,
                          const struct codes *q, struct pool *pool, struct pack_role *sum,
                          struct err *e)
{
    double *error = mem_zero(2 * s->rows, sizeof *error);
    struct comparison c = {s, q, error, error + s->rows};
    pool_run(pool, s->rows, 1, compare_rows, &c);
    for (size_t r = 0; r < s->rows; r++) {
        sum->error += c.error[r];
        sum->power += c.power[r];
    }
    free(error);
    if (isfinite(sum->power))
        return 0;
    return err_set(e, EXIT_BAD_DATA,
                   "%s: tensor %s: expected finite values, got a NaN or an infinity",
                   w->checkpoint->folder,
                   checkpoint_tensor(w->checkpoint, w->role, w->layer)->name);
}

int pack_compare(const struct weight *w, enum dtype d, struct pool *pool, struct pack_role *sum,
                 struct err *e)
{
    struct mat_source s = checkpoint_source(w);
    struct codes q;
    void *memory = quant_make(&q, &s, d, pool);
    int bad = compare_matrix(w, &s, &q, pool, sum, e);
    free(memory);
    return bad;
}

static void write_bytes(struct packing *p, const void *bytes, size_t n)
{
    if (n)
        fwrite(bytes, 1, n, p->out.f);
}

static void write_codes(struct packing *p, const struct codes *q, const struct mat_source *s)
{
    const void *const part[PARTS] = {q->code, q->absmax, q->scale, &q->offset};
    for (int i = 0; i < PARTS; i++)
        write_bytes(p, part[i], dtype_part_bytes(q->dtype, (enum codes_part)i, s->rows, s->cols));
}

/* ---- the kept rows and columns of a matrix ---- */

struct kept {
    struct weight from;
    struct prune_cut cut;
};

/* mat_source.floats of the kept part. */
static void kept_floats(const struct mat_source *s, size_t first, size_t count, float *out)
{
    const struct kept *k = s->ctx;
    struct mat_source from = checkpoint_source(&k->from);
    float *row = mem_alloc(from.cols * sizeof *row);
    from.odd = s->odd;
    for (size_t i = 0; i < count; i++, out += s->cols) {
        from.floats(&from, prune_place(k->cut.rows, k->cut.unit, first + i), 1, row);
        for (size_t j = 0; j < s->cols; j++)
            out[j] = row[prune_place(k->cut.cols, k->cut.unit, j)];
    }
    free(row);
}

static struct mat_source kept_source(const struct packing *p, const struct kept *k)
{
    struct mat_source s = {.floats = kept_floats, .ctx = k};
    if (!k->cut.rows && !k->cut.cols)
        return checkpoint_source(&k->from);
    role_shape(&p->config, k->from.role, &s.rows, &s.cols);
    return s;
}

/* Copies the kept values in the dtype of the file. */
static void write_kept(struct packing *p, const struct kept *k)
{
    const struct tensor *t = checkpoint_tensor(p->c, k->from.role, k->from.layer);
    size_t rows, cols, from_rows, from_cols, v = value_bytes(p, k->from.role, t);
    size_t piece = k->cut.unit * v;
    role_shape(&p->config, k->from.role, &rows, &cols);
    role_shape(&p->c->config, k->from.role, &from_rows, &from_cols);
    unsigned char *row = mem_alloc(cols * v);
    for (size_t i = 0; i < rows; i++) {
        const unsigned char *from =
            t->data + prune_place(k->cut.rows, k->cut.unit, i) * from_cols * v;
        for (size_t j = 0; k->cut.cols && j < cols / k->cut.unit; j++)
            memcpy(row + j * piece, from + k->cut.cols[j] * piece, piece);
        write_bytes(p, k->cut.cols ? row : from, cols * v);
    }
    free(row);
}

static int write_role(struct packing *p, enum role r, size_t layer, struct err *e)
{
    const struct tensor *t = checkpoint_tensor(p->c, r, layer);
    struct pack_role *sum = &p->role[r];
    struct kept k = {.from = {p->c, r, layer}};
    enum dtype d = quantization_dtype(p->quant, &p->config, r, layer, DTYPE_F32);
    if (p->prune)
        k.cut = prune_cut_of(p->prune, r, layer);
    if (d == DTYPE_F32) {
        if (k.cut.rows || k.cut.cols)
            write_kept(p, &k);
        else
            write_bytes(p, t->data, t->bytes);
        return 0;
    }
    struct mat_source s = kept_source(p, &k);
    struct codes q;
    void *memory = quant_make(&q, &s, d, p->pool);
    int bad = compare_matrix(&k.from, &s, &q, p->pool, sum, e);
    write_codes(p, &q, &s);
    free(memory);
    return bad;
}

/* Writes every tensor; stops after a failed write, which out_commit reports. */
static int write_data(struct packing *p, struct err *e)
{
    const struct config *c = &p->c->config;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_tensors(c, (enum role)r) && is_stored(p->c, (enum role)r); l++)
            if (!ferror(p->out.f) && write_role(p, (enum role)r, l, e))
                return -1;
    for (int i = 0; i < 2; i++)
        if (p->c->passed[i])
            write_bytes(p, p->c->passed[i]->data, p->c->passed[i]->bytes);
    return safetensors_unchanged(p->c->tensors, e);
}

static int write_tensors(struct packing *p, const char *folder, struct err *e)
{
    json_t *metadata = p->quant == QUANT_NONE
                           ? json_pack("{s:s}", "format", "pt") /* what transformers looks for */
                           : json_pack("{s:s}", "quantization", quantization_name(p->quant));
    char *path = mem_format("%s/model.safetensors", folder);
    int bad = safetensors_begin(&p->out, path, p->list, p->n, metadata, e);
    free(path);
    json_decref(metadata);
    if (bad)
        return -1;
    if (!write_data(p, e))
        return out_commit(&p->out, e);
    out_abandon(&p->out);
    return -1;
}

/* ---- config.json ---- */

static int write_config(const struct packing *p, const char *folder, struct err *e)
{
    struct config packed = p->config;
    struct out out;
    char *from = mem_format("%s/config.json", p->c->folder);
    char *to = mem_format("%s/config.json", folder);
    json_t *j = json_file(from, CONFIG_MAX_BYTES, e);
    int bad = !j || out_open(&out, to, e);
    packed.quant = p->quant;
    snprintf(packed.source_dtype, sizeof packed.source_dtype, "%s", checkpoint_dtype(p->c));
    if (!bad) {
        family_set_shape(j, &p->c->config, &p->config);
        if (p->quant != QUANT_NONE)
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

int pack_refuses(const struct checkpoint *c, struct err *e)
{
    if (!c->tensors)
        return err_set(e, EXIT_BAD_DATA, "%s: weights that are drawn cannot be packed",
                       c->config.name);
    if (c->tokenizer)
        return err_set(e, EXIT_BAD_DATA, "%s: expected a folder with config.json, got a GGUF file",
                       c->config.name);
    if (c->config.quant != QUANT_NONE)
        return err_set(e, EXIT_BAD_DATA,
                       "%s: is packed already (%s): take the checkpoint it was packed from",
                       c->folder, quantization_name(c->config.quant));
    return 0;
}

int pack_checkpoint(const struct checkpoint *c, enum dtype q, const struct prune *prune,
                    const char *folder, struct pool *pool, struct pack_role role[ROLE_COUNT],
                    struct err *e)
{
    struct packing p = {.c = c, .config = prune ? prune->config : c->config, .prune = prune,
                        .quant = q, .pool = pool, .role = role};
    if (pack_refuses(c, e) || quantization_check(q, &p.config, e))
        return -1;
    memset(role, 0, ROLE_COUNT * sizeof *role);
    list_all(&p);
    int bad = write_tensors(&p, folder, e) || write_config(&p, folder, e);
    for (size_t i = 0; i < p.n; i++)
        free(p.list[i].name);
    free(p.list);
    return bad ? -1 : 0;
}

/* ---- files beside the weights ---- */

static int copy_file(const char *name, const char *source, const char *folder, struct err *e)
{
    char *from = mem_format("%s/%s", source, name);
    char *to = mem_format("%s/%s", folder, name);
    struct buf b = {0};
    struct out o;
    int none = access(from, F_OK) && errno == ENOENT;
    int bad = !none && (file_read(from, SMALL_FILE_MAX, &b, e) || out_open(&o, to, e));
    if (!none && !bad) {
        fwrite(b.data, 1, b.len, o.f);
        bad = out_commit(&o, e);
    }
    buf_free(&b);
    free(from);
    free(to);
    return bad ? -1 : 0;
}

int pack_along(const struct checkpoint *c, const char *folder, struct err *e)
{
    static const char *const copied[] = {"tokenizer.json", "tokenizer_config.json",
                                         "special_tokens_map.json", "generation_config.json",
                                         "chat_template.jinja", "chat_template.json", "LICENSE",
                                         "training.ndjson"};
    int bad = 0;
    for (size_t i = 0; i < sizeof copied / sizeof *copied && !bad; i++)
        bad = copy_file(copied[i], c->folder, folder, e);
    return bad;
}

struct pack_role pack_sum(const struct pack_role role[ROLE_COUNT])
{
    struct pack_role all = {0};
    for (int r = 0; r < ROLE_COUNT; r++) {
        all.tensors += role[r].tensors;
        all.values += role[r].values;
        all.source_bytes += role[r].source_bytes;
        all.packed_bytes += role[r].packed_bytes;
        all.error += role[r].error;
        all.power += role[r].power;
    }
    return all;
}
