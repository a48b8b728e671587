/* quantization.c - which roles a quantization covers, and the member `quantization` of config.json.
 *
 * The member states everything that a reader must know, including block sizes. A member that
 * differs from quantization_json() was not written by pack-model, so the file is refused. */
#include "lib/checkpoint/quantization.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/checkpoint/role.h"

const char *quantization_name(enum dtype dtype)
{
    return dtype == QUANT_MIXED          ? "mixed"
           : dtype_info[dtype].quantized ? dtype_info[dtype].name
                                         : "none";
}

int quantization_named(const char *name, enum dtype *dtype)
{
    enum dtype named = dtype_named(name);
    *dtype = strcmp(name, "none") ? named : QUANT_NONE;
    return *dtype == QUANT_NONE || (named != DTYPES && dtype_info[named].quantized) ? 0 : -1;
}

enum part quantization_part(const struct config *config, enum role role)
{
    if (role_is_vector(role) || role_is_low_rank(role) || role == ROLE_ROUTER ||
        role == ROLE_FUSE || !role_layers(config, role) || (role == ROLE_EMBED && !config->tied))
        return LAYER_PARTS;
    if (role == ROLE_HEAD || role == ROLE_EMBED)
        return PART_HEAD;
    const int feeds = role == ROLE_GATE || role == ROLE_UP || role == ROLE_DOWN ||
                      (role >= ROLE_SHARED_GATE && role <= ROLE_DENSE_DOWN);
    return feeds ? PART_FFN : PART_ATTENTION;
}

const char *quantization_part_name(enum part part)
{
    static const char *const names[LAYER_PARTS] = {"attention", "ffn", "head"};
    return names[part];
}

enum dtype quantization_dtype(enum dtype dtype, const struct config *config, enum role role,
                              size_t layer, enum dtype dense)
{
    enum part part = quantization_part(config, role);
    /* The router is fp32 on every back end, because rounding could change the chosen experts. */
    if (role == ROLE_ROUTER)
        return DTYPE_F32;
    if (dtype == QUANT_NONE || part == LAYER_PARTS)
        return dense;
    if (dtype != QUANT_MIXED)
        return part == PART_HEAD ? dtype_info[dtype].head : dtype;
    enum dtype mixed =
        (enum dtype)config->mix[part == PART_HEAD ? 0 : role_layer(config, role, layer)][part];
    return mixed == QUANT_NONE ? dense : mixed;
}

/* Checks that the matrix of a role fits its format in each layer. */
static int check_role(enum dtype dtype, const struct config *config, enum role role, struct err *e)
{
    size_t rows, cols;
    role_shape(config, role, &rows, &cols);
    for (size_t layer = 0; layer < role_tensors(config, role); layer++) {
        const char *why = dtype_refuses(quantization_dtype(dtype, config, role, layer, DTYPE_F32),
                                        cols);
        if (why)
            return err_set(e, EXIT_BAD_DATA, "%s: %s: %s [%zu, %zu]: %s", config->name,
                           quantization_name(dtype), role_name(role), rows, cols, why);
    }
    return 0;
}

int quantization_check(enum dtype dtype, const struct config *config, struct err *e)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (check_role(dtype, config, (enum role)role, e))
            return -1;
    return 0;
}

int quantization_resolve(const struct config *config, enum dtype asked, enum dtype *dtype,
                         struct err *e)
{
    *dtype = config->quant == QUANT_NONE ? asked : config->quant;
    if (asked != QUANT_NONE && asked != *dtype)
        return err_set(e, EXIT_BAD_USAGE,
                       "--quant %s: %s is packed as %s: leave --quant out, or take the checkpoint "
                       "it was packed from", quantization_name(asked), config->name,
                       quantization_name(config->quant));
    return quantization_check(*dtype, config, e);
}

/* ---- config.json ---- */

/* The name of the format of a part, as JSON. */
static json_t *mix_name(const struct config *config, size_t layer, enum part part)
{
    return json_string(quantization_name((enum dtype)config->mix[layer][part]));
}

static void put_mix(json_t *object, const struct config *config)
{
    json_t *layers = json_array();
    for (size_t layer = 0; layer < config->layers; layer++)
        json_array_append_new(layers, json_pack("{s:o, s:o}", "attention",
                                                mix_name(config, layer, PART_ATTENTION), "ffn",
                                                mix_name(config, layer, PART_FFN)));
    json_object_set_new(object, "head", mix_name(config, 0, PART_HEAD));
    json_object_set_new(object, "layers", layers);
}

json_t *quantization_json(const struct config *config)
{
    if (config->quant == QUANT_NONE)
        return NULL;
    json_t *object = json_pack("{s:s, s:s}", "method", quantization_name(config->quant),
                               "source_dtype", config->source_dtype);
    const struct dtype_info *i =
        &dtype_info[config->quant == QUANT_MIXED ? DTYPE_NF4 : config->quant];
    if (config->quant == QUANT_MIXED)
        put_mix(object, config);
    if (i->block)
        json_object_set_new(object, "block", json_integer((json_int_t)i->block));
    if (i->super)
        json_object_set_new(object, "absmax_block", json_integer((json_int_t)i->super));
    return object;
}

/* Reads method and source_dtype. */
static int read_texts(struct config *config, const json_t *object, const char *where, struct err *e)
{
    static const char *const dtypes[] = {"F32", "F16", "BF16"};
    const char *method, *dtype;
    if (json_text(object, where, "method", &method, e) ||
        json_text(object, where, "source_dtype", &dtype, e))
        return -1;
    int mixed = !strcmp(method, "mixed");
    if (mixed)
        config->quant = QUANT_MIXED;
    else if (quantization_named(method, &config->quant) || config->quant == QUANT_NONE)
        return err_set(e, EXIT_BAD_DATA,
                       "%s: method: expected " DTYPE_QUANTIZED "|mixed, got \"%.40s\"", where,
                       method);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtype, dtypes[i])) {
            memcpy(config->source_dtype, dtypes[i], strlen(dtypes[i]) + 1);
            return 0;
        }
    return err_set(e, EXIT_BAD_DATA, "%s: source_dtype: expected F32, F16 or BF16, got \"%.40s\"",
                   where, dtype);
}

/* Reads the format of a part. The member of `object` with the name of the part states the format.
 * The head allows only formats that are in dtype_info[].head, or none. */
static int read_part(struct config *config, const json_t *object, const char *where, size_t layer,
                     enum part part, struct err *e)
{
    const char *key = quantization_part_name(part), *name;
    enum dtype dtype;
    if (json_text(object, where, key, &name, e))
        return -1;
    if (quantization_named(name, &dtype) ||
        (part == PART_HEAD && dtype != QUANT_NONE && dtype_info[dtype].head != dtype))
        return err_set(e, EXIT_BAD_DATA, "%s: %s: expected %s, got \"%.40s\"", where, key,
                       part == PART_HEAD ? "none|int8|fp8|int8-vector"
                                         : "none|" DTYPE_QUANTIZED, name);
    config->mix[layer][part] = (uint8_t)dtype;
    return 0;
}

/* Reads the members head and layers; layers must have one entry for each layer of the network. */
static int read_mix(struct config *config, const json_t *object, const char *where, struct err *e)
{
    const json_t *layers = json_object_get(object, "layers");
    if (!json_is_array(layers) || json_array_size(layers) != config->layers)
        return err_set(e, EXIT_BAD_DATA, "%s: layers: expected a list of %zu, one a layer", where,
                       config->layers);
    int bad = read_part(config, object, where, 0, PART_HEAD, e);
    for (size_t number = 0; number < config->layers && !bad; number++) {
        char *at = mem_format("%s: layers: %zu", where, number);
        const json_t *layer = json_array_get(layers, number);
        bad = !json_is_object(layer) ? err_set(e, EXIT_BAD_DATA, "%s: expected an object", at)
                                     : read_part(config, layer, at, number, PART_ATTENTION, e) ||
                                           read_part(config, layer, at, number, PART_FFN, e);
        free(at);
    }
    return bad ? -1 : 0;
}

/* Refuses weights quantized by other tools. *e names MLX, or the other tool's quant_method. */
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

int quantization_read(struct config *into, const json_t *config, const char *path, struct err *e)
{
    const json_t *object = json_object_get(config, "quantization");
    if (refuse_foreign(config, path, e))
        return -1;
    if (!json_has(config, "quantization"))
        return 0;
    if (!json_is_object(object))
        return err_set(e, EXIT_BAD_DATA, "%s: quantization: expected an object", path);
    char *where = mem_format("%s: quantization", path);
    int bad = read_texts(into, object, where, e) ||
              (into->quant == QUANT_MIXED && read_mix(into, object, where, e));
    if (!bad) {
        json_t *want = quantization_json(into);
        char *text = json_dumps(want, JSON_COMPACT);
        if (!json_equal(object, want))
            bad = err_set(e, EXIT_BAD_DATA, "%s: expected %s, got other members or values", where,
                          text ? text : "");
        free(text);
        json_decref(want);
    }
    free(where);
    return bad ? -1 : quantization_check(into->quant, into, e);
}
