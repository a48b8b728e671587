/* quantization.c - the roles that a quantization covers, and its member in config.json.
 *
 * The member contains everything that a reader must know, including block sizes. A file with other
 * values is not ours and is refused. */
#include "lib/checkpoint/quantization.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/checkpoint/role.h"

const char *quantization_name(enum dtype q)
{
    return q == QUANT_MIXED ? "mixed" : dtype_info[q].quantized ? dtype_info[q].name : "none";
}

int quantization_named(const char *name, enum dtype *q)
{
    enum dtype d = dtype_named(name);
    *q = strcmp(name, "none") ? d : QUANT_NONE;
    return *q == QUANT_NONE || (d != DTYPES && dtype_info[d].quantized) ? 0 : -1;
}

enum part quantization_part(const struct config *c, enum role r)
{
    if (role_is_vector(r) || role_is_low_rank(r) || r == ROLE_ROUTER || r == ROLE_FUSE ||
        !role_layers(c, r) ||
        (r == ROLE_EMBED && !c->tied))
        return LAYER_PARTS;
    if (r == ROLE_HEAD || r == ROLE_EMBED)
        return PART_HEAD;
    const int feeds = r == ROLE_GATE || r == ROLE_UP || r == ROLE_DOWN ||
                      (r >= ROLE_SHARED_GATE && r <= ROLE_DENSE_DOWN);
    return feeds ? PART_FFN : PART_ATTENTION;
}

const char *quantization_part_name(enum part p)
{
    static const char *const names[LAYER_PARTS] = {"attention", "ffn", "head"};
    return names[p];
}

enum dtype quantization_dtype(enum dtype q, const struct config *c, enum role r, size_t layer,
                              enum dtype dense)
{
    enum part part = quantization_part(c, r);
    if (r == ROLE_ROUTER) /* fp32 on every back end, because it decides */
        return DTYPE_F32;
    if (q == QUANT_NONE || part == LAYER_PARTS)
        return dense;
    if (q != QUANT_MIXED)
        return part == PART_HEAD ? dtype_info[q].head : q;
    enum dtype d = (enum dtype)c->mix[part == PART_HEAD ? 0 : role_layer(c, r, layer)][part];
    return d == QUANT_NONE ? dense : d;
}

/* Checks that the matrix of a role fits its format in each layer. */
static int check_role(enum dtype q, const struct config *c, enum role r, struct err *e)
{
    size_t rows, cols;
    role_shape(c, r, &rows, &cols);
    for (size_t l = 0; l < role_tensors(c, r); l++) {
        const char *why = dtype_refuses(quantization_dtype(q, c, r, l, DTYPE_F32), cols);
        if (why)
            return err_set(e, EXIT_BAD_DATA, "%s: %s: %s [%zu, %zu]: %s", c->name,
                           quantization_name(q), role_name(r), rows, cols, why);
    }
    return 0;
}

int quantization_check(enum dtype q, const struct config *c, struct err *e)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        if (check_role(q, c, (enum role)r, e))
            return -1;
    return 0;
}

int quantization_resolve(const struct config *c, enum dtype asked, enum dtype *q, struct err *e)
{
    *q = c->quant == QUANT_NONE ? asked : c->quant;
    if (asked != QUANT_NONE && asked != *q)
        return err_set(e, EXIT_BAD_USAGE,
                       "--quant %s: %s is packed as %s: leave --quant out, or take the checkpoint "
                       "it was packed from", quantization_name(asked), c->name,
                       quantization_name(c->quant));
    return quantization_check(*q, c, e);
}

/* ---- config.json ---- */

/* Name of the format of a part. */
static json_t *mix_name(const struct config *c, size_t layer, enum part p)
{
    return json_string(quantization_name((enum dtype)c->mix[layer][p]));
}

static void put_mix(json_t *o, const struct config *c)
{
    json_t *layers = json_array();
    for (size_t l = 0; l < c->layers; l++)
        json_array_append_new(layers, json_pack("{s:o, s:o}", "attention",
                                                mix_name(c, l, PART_ATTENTION), "ffn",
                                                mix_name(c, l, PART_FFN)));
    json_object_set_new(o, "head", mix_name(c, 0, PART_HEAD));
    json_object_set_new(o, "layers", layers);
}

json_t *quantization_json(const struct config *c)
{
    if (c->quant == QUANT_NONE)
        return NULL;
    json_t *o = json_pack("{s:s, s:s}", "method", quantization_name(c->quant), "source_dtype",
                          c->source_dtype);
    const struct dtype_info *i = &dtype_info[c->quant == QUANT_MIXED ? DTYPE_NF4 : c->quant];
    if (c->quant == QUANT_MIXED)
        put_mix(o, c);
    if (i->block)
        json_object_set_new(o, "block", json_integer((json_int_t)i->block));
    if (i->super)
        json_object_set_new(o, "absmax_block", json_integer((json_int_t)i->super));
    return o;
}

/* Reads method and source_dtype. */
static int read_texts(struct config *c, const json_t *o, const char *where, struct err *e)
{
    static const char *const dtypes[] = {"F32", "F16", "BF16"};
    const char *method, *dtype;
    if (json_text(o, where, "method", &method, e) || json_text(o, where, "source_dtype", &dtype, e))
        return -1;
    int mixed = !strcmp(method, "mixed");
    if (mixed)
        c->quant = QUANT_MIXED;
    else if (quantization_named(method, &c->quant) || c->quant == QUANT_NONE)
        return err_set(e, EXIT_BAD_DATA,
                       "%s: method: expected " DTYPE_QUANTIZED "|mixed, got \"%.40s\"", where,
                       method);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtype, dtypes[i])) {
            memcpy(c->source_dtype, dtypes[i], strlen(dtypes[i]) + 1);
            return 0;
        }
    return err_set(e, EXIT_BAD_DATA, "%s: source_dtype: expected F32, F16 or BF16, got \"%.40s\"",
                   where, dtype);
}

/* Reads the format in a member of `o`. Not every format suits the head. */
static int read_part(struct config *c, const json_t *o, const char *where, size_t layer,
                     enum part p, struct err *e)
{
    const char *key = quantization_part_name(p), *name;
    enum dtype d;
    if (json_text(o, where, key, &name, e))
        return -1;
    if (quantization_named(name, &d) ||
        (p == PART_HEAD && d != QUANT_NONE && dtype_info[d].head != d))
        return err_set(e, EXIT_BAD_DATA, "%s: %s: expected %s, got \"%.40s\"", where, key,
                       p == PART_HEAD ? "none or a format of whole rows"
                                      : "none|" DTYPE_QUANTIZED, name);
    c->mix[layer][p] = (uint8_t)d;
    return 0;
}

/* Reads head and layers of a mix, with one entry per layer of the network. */
static int read_mix(struct config *c, const json_t *o, const char *where, struct err *e)
{
    const json_t *layers = json_object_get(o, "layers");
    if (!json_is_array(layers) || json_array_size(layers) != c->layers)
        return err_set(e, EXIT_BAD_DATA, "%s: layers: expected a list of %zu, one a layer", where,
                       c->layers);
    int bad = read_part(c, o, where, 0, PART_HEAD, e);
    for (size_t l = 0; l < c->layers && !bad; l++) {
        char *at = mem_format("%s: layers: %zu", where, l);
        const json_t *layer = json_array_get(layers, l);
        bad = !json_is_object(layer) ? err_set(e, EXIT_BAD_DATA, "%s: expected an object", at)
                                     : read_part(c, layer, at, l, PART_ATTENTION, e) ||
                                           read_part(c, layer, at, l, PART_FFN, e);
        free(at);
    }
    return bad ? -1 : 0;
}

/* Refuses the formats of other tools, by name. */
static int refuse_foreign(const json_t *config, const char *path, struct err *e)
{
    const json_t *mlx = json_object_get(config, "quantization");
    const json_t *other = json_object_get(config, "quantization_config");
    const char *method = json_string_value(json_object_get(other, "quant_method"));
    if (json_has(mlx, "bits") && !json_has(mlx, "method"))
        return err_set(e, EXIT_BAD_DATA, "%s: quantization: MLX quantized weights are not "
                       "supported: use the original checkpoint, or convert it back with "
                       "mlx_lm.convert --dequantize", path);
    if (json_has(config, "quantization_config"))
        return err_set(e, EXIT_BAD_DATA, "%s: quantization_config: %.40s quantized weights are "
                       "not supported: use the original checkpoint, and --quant or pack-model",
                       path, method ? method : "otherwise");
    return 0;
}

int quantization_read(struct config *c, const json_t *config, const char *path, struct err *e)
{
    const json_t *o = json_object_get(config, "quantization");
    if (refuse_foreign(config, path, e))
        return -1;
    if (!json_has(config, "quantization"))
        return 0;
    if (!json_is_object(o))
        return err_set(e, EXIT_BAD_DATA, "%s: quantization: expected an object", path);
    char *where = mem_format("%s: quantization", path);
    int bad = read_texts(c, o, where, e) ||
              (c->quant == QUANT_MIXED && read_mix(c, o, where, e));
    if (!bad) {
        json_t *want = quantization_json(c);
        char *text = json_dumps(want, JSON_COMPACT);
        if (!json_equal(o, want))
            bad = err_set(e, EXIT_BAD_DATA, "%s: expected %s, got other members or values", where,
                          text ? text : "");
        free(text);
        json_decref(want);
    }
    free(where);
    return bad ? -1 : quantization_check(c->quant, c, e);
}
