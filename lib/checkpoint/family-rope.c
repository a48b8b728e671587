/* family-rope.c - reads how positions rotate: rope_scaling or rope_parameters of config.json, with
 * the types default, llama3, yarn and linear. Keys that belong to no type are refused: they would
 * change the frequencies, or the size of the scores. */
#include "lib/checkpoint/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"

/* Type llama3; `in` is the object. */
static int read_llama3(struct config *c, const struct family_source *in)
{
    const char *const o = "original_max_position_embeddings";
    if (json_number(in->json, in->path, "factor", 1, 1e6, &c->rope_factor, in->e) ||
        json_number(in->json, in->path, "low_freq_factor", 1e-6, 1e6, &c->rope_low_freq, in->e) ||
        json_number(in->json, in->path, "high_freq_factor", 1e-6, 1e6, &c->rope_high_freq,
                    in->e) ||
        json_number(in->json, in->path, o, 1, 1e9, &c->rope_original_context, in->e))
        return -1;
    return c->rope_high_freq > c->rope_low_freq
               ? 0
               : family_refuse(in, "high_freq_factor", "more than low_freq_factor");
}

/* *to = the number, or `standard` if the key is absent or null. */
static int read_or(const struct family_source *in, const char *key, double standard, double lo,
                   double *to)
{
    *to = standard;
    return json_has(in->json, key) ? json_number(in->json, in->path, key, lo, 1e9, to, in->e) : 0;
}

static double grown(double factor, double scale)
{
    return factor > 1 ? 0.1 * scale * log(factor) + 1 : 1;
}

/* The attention factor of yarn. Where the file has none, it is 0.1 ln(factor) + 1; of two scales,
 * the quotient. Source: Peng et al. 2023, section 3.4; the keys as transformers reads them. */
static int read_attention(struct config *c, const struct family_source *in)
{
    double scale, scale_all;
    if (read_or(in, "mscale", 0, 0, &scale) || read_or(in, "mscale_all_dim", 0, 0, &scale_all) ||
        read_or(in, "attention_factor", 0, 0, &c->rope_scale))
        return -1;
    if (!json_has(in->json, "attention_factor"))
        c->rope_scale = scale > 0 && scale_all > 0
                            ? grown(c->rope_factor, scale) / grown(c->rope_factor, scale_all)
                            : grown(c->rope_factor, 1);
    return c->rope_scale >= 1e-3 ? 0
                                 : family_refuse(in, "attention_factor", "0.001 or more");
}

/* Type yarn. Two readings of yarn are published. They agree if factor = max_position_embeddings /
 * original_max_position_embeddings. */
static int read_yarn(struct config *c, const struct family_source *in)
{
    static const struct family_fixed fixed[] = {{"truncate", "true", KEY_READ}, {0}};
    const char *const o = "original_max_position_embeddings";
    double context = (double)c->context, again;
    if (family_check_fixed(in, fixed) ||
        json_number(in->json, in->path, "factor", 1e-3, 1e6, &c->rope_factor, in->e) ||
        json_number(in->json, in->path, o, 1, 1e9, &c->rope_original_context, in->e) ||
        read_or(in, "beta_fast", 32, 1e-6, &c->rope_high_freq) ||
        read_or(in, "beta_slow", 1, 1e-6, &c->rope_low_freq) ||
        read_or(in, "llama_4_scaling_beta", 0, 0, &c->rope_beta) ||
        read_or(in, "max_position_embeddings", context, 1, &again) || read_attention(c, in))
        return -1;
    if (c->rope_high_freq <= c->rope_low_freq)
        return family_refuse(in, "beta_fast", "more than beta_slow");
    if (again != context && again != c->rope_original_context)
        return family_refuse(in, "max_position_embeddings", "the one of config.json, or "
                             "original_max_position_embeddings");
    const int read_before = c->rope_beta > 0 && context == c->rope_original_context;
    if (context != c->rope_factor * c->rope_original_context && !read_before)
        return family_refuse(in, "factor", "max_position_embeddings / "
                             "original_max_position_embeddings");
    if (c->rope_beta > 0 && context > c->rope_original_context)
        c->context = (size_t)c->rope_original_context;
    return 0;
}

int family_read_rope(struct config *c, const struct family_source *s, const char *key)
{
    static const char *const members[] = {
        "rope_type", "type", "rope_theta", "factor", "low_freq_factor", "high_freq_factor",
        "original_max_position_embeddings", "partial_rotary_factor", NULL};
    static const char *const of_yarn[] = {
        "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "attention_factor", "truncate",
        "llama_4_scaling_beta", "max_position_embeddings", NULL};
    static const struct family_fixed fixed[] = {{"partial_rotary_factor", "1.0", KEY_READ}, {0}};
    if (!json_has(s->json, key))
        return 0;
    char *where = mem_format("%s: %s", s->path, key);
    const struct family_source in = {json_object_get(s->json, key), where, s->e};
    const char *type = "default", *member;
    json_t *v;
    const char *type_key = json_has(in.json, "rope_type") ? "rope_type" : "type";
    int bad = !json_is_object(in.json) ? family_refuse(s, key, "null or an object")
              : json_has(in.json, type_key) ? json_text(in.json, where, type_key, &type, s->e)
                                            : 0;
    const int yarn = !strcmp(type, "yarn"), llama3 = !strcmp(type, "llama3");
    const int linear = !strcmp(type, "linear"), plain = !strcmp(type, "default");
    const int shares = family_lists(c->family->finished, "partial_rotary_factor");
    if (!bad && !plain && !c->family->rope_scaling)
        bad = family_refuse(s, key, "no such key: another rotation is not supported here");
    c->rope_yarn |= yarn;
    c->rope_llama3 |= llama3;
    c->rope_linear |= linear;
    if (!bad && c->rope_yarn + c->rope_llama3 + c->rope_linear > 1)
        bad = family_refuse(s, key, "one type, not two");
    if (!bad)
        json_object_foreach((json_t *)in.json, member, v)
            if (!bad && !json_is_null(v) && !family_lists(members, member) &&
                !(yarn && family_lists(of_yarn, member)))
                bad = family_refuse(&in, member, "no such key: it is not supported");
    if (!bad && json_has(in.json, "rope_theta"))
        bad = json_number(in.json, where, "rope_theta", 1, 1e12, &c->rope_theta, s->e);
    bad = bad || (!shares && family_check_fixed(&in, fixed));
    if (!bad)
        bad = llama3   ? read_llama3(c, &in)
              : yarn   ? read_yarn(c, &in)
              : linear ? json_number(in.json, where, "factor", 1, 1e6, &c->rope_factor, s->e)
              : plain  ? 0
                       : family_refuse(&in, type_key, "\"default\", \"llama3\", \"yarn\" or "
                                       "\"linear\": others are not supported");
    free(where);
    return bad;
}

int family_needs_yarn(struct config *c, const struct family_source *s)
{
    const char *key = json_has(s->json, "rope_scaling") ? "rope_scaling" : "rope_parameters";
    return c->rope_yarn ? 0 : family_refuse(s, key, "an object with rope_type \"yarn\"");
}
