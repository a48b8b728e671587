/* family-save.c - writes config.json by the tables with which family-load.c reads it, so that this
 * project and the publishers' code read the same network from it. A shape that the keys of the
 * family cannot express is refused before a file is written. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/checkpoint/family.h"

static void set_int(json_t *object, const char *key, size_t v)
{
    json_object_set_new(object, key, json_integer((json_int_t)v));
}

static void set_id(json_t *object, const char *key, int64_t id)
{
    if (id >= 0)
        json_object_set_new(object, key, json_integer((json_int_t)id));
}

static void set_real(json_t *object, const char *key, double v)
{
    json_object_set_new(object, key, json_real(v));
}

static void set_ids(json_t *object, const struct config *config)
{
    json_t *eos = json_array();
    for (size_t i = 0; i < config->n_eos; i++)
        json_array_append_new(eos, json_integer((json_int_t)config->eos[i]));
    set_id(object, "bos_token_id", config->bos);
    if (config->n_eos == 1)
        json_object_set(object, "eos_token_id", json_array_get(eos, 0));
    else if (config->n_eos)
        json_object_set(object, "eos_token_id", eos);
    json_decref(eos);
    set_id(object, "pad_token_id", config->pad);
    set_id(object, "mask_token_id", config->mask);
}

static size_t number_of(const struct config *config, const struct family_number *k)
{
    size_t v;
    memcpy(&v, (const char *)config + k->offset, sizeof v);
    return v;
}

/* 1: this optional key must be written: head_dim, if H E is not D. */
static int must_say(const struct config *config, const struct family_number *k)
{
    return k->offset == FAMILY_AT(head_dim) && config->width != config->heads * config->head_dim;
}

static void set_numbers(json_t *object, const struct config *config)
{
    for (const struct family_number *k = config->family->numbers; k->key; k++)
        if (k->use != KEY_READ || must_say(config, k))
            set_int(object, k->key, number_of(config, k));
}

void family_set_shape(json_t *json, const struct config *from, const struct config *to)
{
    for (const struct family_number *k = to->family->numbers; k->key; k++)
        if (number_of(from, k) != number_of(to, k) || (must_say(to, k) && !must_say(from, k)))
            set_int(json, k->key, number_of(to, k));
}

static void set_fixed(json_t *object, const struct family_fixed *k)
{
    for (; k->key; k++)
        if (k->use != KEY_READ)
            json_object_set_new(object, k->key, json_loads(k->value, JSON_DECODE_ANY, NULL));
}

static void set_yarn(json_t *object, const struct config *config)
{
    json_object_del(object, "rope_theta");
    json_t *rope = json_pack("{s:s, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:f}", "rope_type", "yarn",
                             "rope_theta", config->rope_theta, "factor", config->rope_factor,
                             "beta_fast", config->rope_high_freq, "beta_slow",
                             config->rope_low_freq, "original_max_position_embeddings",
                             (json_int_t)config->rope_original_context, "mscale", 1.0,
                             "mscale_all_dim", 1.0, "llama_4_scaling_beta", config->rope_beta);
    if (config_rope_scale(config) != 1)
        json_object_set_new(rope, "attention_factor", json_real(config->rope_scale));
    json_object_set_new(object, "rope_parameters", rope);
}

static json_t *config_json(const struct config *config)
{
    const struct family *family = config->family;
    json_t *object = json_pack("{s:s, s:[s]}", "model_type", family->model_type, "architectures",
                               family->architecture);
    set_numbers(object, config);
    json_object_set_new(object, family->tied_key, json_boolean(config->tied));
    set_real(object, "rms_norm_eps", config->norm_eps);
    set_real(object, "rope_theta", config->rope_theta);
    if (config->rope_llama3)
        json_object_set_new(object, "rope_scaling",
                            json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor",
                                      config->rope_factor, "low_freq_factor", config->rope_low_freq,
                                      "high_freq_factor", config->rope_high_freq,
                                      "original_max_position_embeddings",
                                      (json_int_t)config->rope_original_context));
    if (config->rope_linear)
        json_object_set_new(object, "rope_scaling", json_pack("{s:s, s:f}", "rope_type", "linear",
                                                              "factor", config->rope_factor));
    if (config->rope_yarn)
        set_yarn(object, config);
    set_fixed(object, family->fixed);
    if (family->say)
        family->say(object, config);
    set_ids(object, config);
    return object;
}

static int has_number(const struct family *family, size_t offset)
{
    for (const struct family_number *k = family->numbers; k->key; k++)
        if (k->offset == offset)
            return 1;
    return 0;
}

static int can_say(const struct config *config, struct err *e)
{
    const struct family *family = config->family;
    if (config->width != config->heads * config->head_dim &&
        !has_number(family, FAMILY_AT(head_dim)))
        return err_set(e, EXIT_INTERNAL,
                       "%s config: head_dim %zu x heads %zu is not the width %zu", family->name,
                       config->head_dim, config->heads, config->width);
    if ((config->rope_llama3 || config->rope_yarn || config->rope_linear) && !family->rope_scaling)
        return err_set(e, EXIT_INTERNAL, "%s config: rescaled RoPE has no key", family->name);
    if (config->rope_divisor[0] > 0)
        return err_set(e, EXIT_INTERNAL, "%s config: divisors of RoPE have no key", family->name);
    if (config_denoises(config) && config->mask < 0)
        return err_set(e, EXIT_INTERNAL, "%s config: no mask token", family->name);
    if (config_denoises(config) && !config->n_eos)
        return err_set(e, EXIT_INTERNAL, "%s config: no eos token", family->name);
    return 0;
}

int family_save(const struct config *config, const char *folder, struct err *e)
{
    struct out out;
    if (can_say(config, e) || file_make_folder(folder, e))
        return -1;
    char *path = mem_format("%s/config.json", folder);
    int bad = out_open(&out, path, e);
    free(path);
    if (bad)
        return -1;
    json_t *object = config_json(config);
    bad = json_dumpf(object, out.f, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(object);
    if (bad || fputc('\n', out.f) == EOF) {
        err_set(e, EXIT_IO, "%s/config.json: cannot write: %s", folder, strerror(errno));
        out_abandon(&out);
        return -1;
    }
    return out_commit(&out, e);
}
