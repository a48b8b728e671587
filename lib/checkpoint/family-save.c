/* family-save.c - writes config.json by the same tables that family-load.c reads, so that this
 * project and the publishers' code read the same network. A shape that the keys of the family
 * cannot express is refused before a file is written. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/checkpoint/family.h"

static void set_int(json_t *o, const char *key, size_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void set_id(json_t *o, const char *key, int64_t id)
{
    if (id >= 0)
        json_object_set_new(o, key, json_integer((json_int_t)id));
}

static void set_real(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, json_real(v));
}

static void set_ids(json_t *o, const struct config *c)
{
    json_t *eos = json_array();
    for (size_t i = 0; i < c->n_eos; i++)
        json_array_append_new(eos, json_integer((json_int_t)c->eos[i]));
    set_id(o, "bos_token_id", c->bos);
    if (c->n_eos == 1)
        json_object_set(o, "eos_token_id", json_array_get(eos, 0));
    else if (c->n_eos)
        json_object_set(o, "eos_token_id", eos);
    json_decref(eos);
    set_id(o, "pad_token_id", c->pad);
    set_id(o, "mask_token_id", c->mask);
}

static size_t number_of(const struct config *c, const struct family_number *k)
{
    size_t v;
    memcpy(&v, (const char *)c + k->offset, sizeof v);
    return v;
}

/* 1: an optional key that is needed here: head_dim, where H E is not D. */
static int must_say(const struct config *c, const struct family_number *k)
{
    return k->offset == FAMILY_AT(head_dim) && c->width != c->heads * c->head_dim;
}

static void set_numbers(json_t *o, const struct config *c)
{
    for (const struct family_number *k = c->family->numbers; k->key; k++)
        if (k->use != KEY_READ || must_say(c, k))
            set_int(o, k->key, number_of(c, k));
}

void family_set_shape(json_t *json, const struct config *from, const struct config *to)
{
    for (const struct family_number *k = to->family->numbers; k->key; k++)
        if (number_of(from, k) != number_of(to, k) || (must_say(to, k) && !must_say(from, k)))
            set_int(json, k->key, number_of(to, k));
}

static void set_fixed(json_t *o, const struct family_fixed *k)
{
    for (; k->key; k++)
        if (k->use != KEY_READ)
            json_object_set_new(o, k->key, json_loads(k->value, JSON_DECODE_ANY, NULL));
}

static void set_yarn(json_t *o, const struct config *c)
{
    json_object_del(o, "rope_theta");
    json_t *rope = json_pack("{s:s, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:f}", "rope_type", "yarn",
                             "rope_theta", c->rope_theta, "factor", c->rope_factor, "beta_fast",
                             c->rope_high_freq, "beta_slow", c->rope_low_freq,
                             "original_max_position_embeddings",
                             (json_int_t)c->rope_original_context, "mscale", 1.0,
                             "mscale_all_dim", 1.0, "llama_4_scaling_beta", c->rope_beta);
    if (config_rope_scale(c) != 1)
        json_object_set_new(rope, "attention_factor", json_real(c->rope_scale));
    json_object_set_new(o, "rope_parameters", rope);
}

static json_t *config_json(const struct config *c)
{
    const struct family *f = c->family;
    json_t *o = json_pack("{s:s, s:[s]}", "model_type", f->model_type, "architectures",
                          f->architecture);
    set_numbers(o, c);
    json_object_set_new(o, f->tied_key, json_boolean(c->tied));
    set_real(o, "rms_norm_eps", c->norm_eps);
    set_real(o, "rope_theta", c->rope_theta);
    if (c->rope_llama3)
        json_object_set_new(o, "rope_scaling",
                            json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor",
                                      c->rope_factor, "low_freq_factor", c->rope_low_freq,
                                      "high_freq_factor", c->rope_high_freq,
                                      "original_max_position_embeddings",
                                      (json_int_t)c->rope_original_context));
    if (c->rope_linear)
        json_object_set_new(o, "rope_scaling", json_pack("{s:s, s:f}", "rope_type", "linear",
                                                         "factor", c->rope_factor));
    if (c->rope_yarn)
        set_yarn(o, c);
    set_fixed(o, f->fixed);
    if (f->say)
        f->say(o, c);
    set_ids(o, c);
    return o;
}

static int has_number(const struct family *f, size_t offset)
{
    for (const struct family_number *k = f->numbers; k->key; k++)
        if (k->offset == offset)
            return 1;
    return 0;
}

static int can_say(const struct config *c, struct err *e)
{
    const struct family *f = c->family;
    if (c->width != c->heads * c->head_dim && !has_number(f, FAMILY_AT(head_dim)))
        return err_set(e, EXIT_INTERNAL,
                       "%s config: head_dim %zu x heads %zu is not the width %zu", f->name,
                       c->head_dim, c->heads, c->width);
    if ((c->rope_llama3 || c->rope_yarn || c->rope_linear) && !f->rope_scaling)
        return err_set(e, EXIT_INTERNAL, "%s config: rescaled RoPE has no key", f->name);
    if (config_denoises(c) && c->mask < 0)
        return err_set(e, EXIT_INTERNAL, "%s config: no mask token", f->name);
    if (config_denoises(c) && !c->n_eos)
        return err_set(e, EXIT_INTERNAL, "%s config: no eos token", f->name);
    return 0;
}

int family_save(const struct config *c, const char *folder, struct err *e)
{
    struct out out;
    if (can_say(c, e) || file_make_folder(folder, e))
        return -1;
    char *path = mem_format("%s/config.json", folder);
    int bad = out_open(&out, path, e);
    free(path);
    if (bad)
        return -1;
    json_t *o = config_json(c);
    bad = json_dumpf(o, out.f, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(o);
    if (bad || fputc('\n', out.f) == EOF) {
        err_set(e, EXIT_IO, "%s/config.json: cannot write: %s", folder, strerror(errno));
        out_abandon(&out);
        return -1;
    }
    return out_commit(&out, e);
}
