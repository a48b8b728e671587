/* family-rope.c - reads the rotation of positions: rope_scaling or rope_parameters of config.json,
 * with the types default, llama3, yarn and linear. Keys that belong to none of these types are
 * refused, because they would change the frequencies or the size of the scores. */
#include "lib/checkpoint/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"

/* Reads type llama3; `in` is the object rope_scaling or rope_parameters. */
static int read_llama3(struct config *config, const struct family_source *in)
{
    const char *const o = "original_max_position_embeddings";
    if (json_number(in->json, in->path, "factor", 1, 1e6, &config->rope_factor, in->e) ||
        json_number(in->json, in->path, "low_freq_factor", 1e-6, 1e6, &config->rope_low_freq,
                    in->e) ||
        json_number(in->json, in->path, "high_freq_factor", 1e-6, 1e6, &config->rope_high_freq,
                    in->e) ||
        json_number(in->json, in->path, o, 1, 1e9, &config->rope_original_context, in->e))
        return -1;
    return config->rope_high_freq > config->rope_low_freq
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

/* Reads the attention factor of yarn. If the file does not state it, with g(m) = 0.1 m ln(factor)
 * + 1 it is g(mscale) / g(mscale_all_dim) if both keys are there, else g(1). Source: Peng et al.
 * 2023 (arXiv 2309.00071), section 3.4; the keys as transformers reads them. */
static int read_attention(struct config *config, const struct family_source *in)
{
    double scale, scale_all;
    if (read_or(in, "mscale", 0, 0, &scale) || read_or(in, "mscale_all_dim", 0, 0, &scale_all) ||
        read_or(in, "attention_factor", 0, 0, &config->rope_scale))
        return -1;
    if (!json_has(in->json, "attention_factor"))
        config->rope_scale = scale > 0 && scale_all > 0 ? grown(config->rope_factor, scale) /
                                                              grown(config->rope_factor, scale_all)
                                                        : grown(config->rope_factor, 1);
    return config->rope_scale >= 1e-3 ? 0
                                      : family_refuse(in, "attention_factor", "0.001 or more");
}

/* Reads type yarn. Two published readers use these keys in different ways. They agree if factor =
 * max_position_embeddings / original_max_position_embeddings, so other files are refused. */
static int read_yarn(struct config *config, const struct family_source *in)
{
    static const struct family_fixed fixed[] = {{"truncate", "true", KEY_READ}, {0}};
    const char *const original = "original_max_position_embeddings";
    double context = (double)config->context, again;
    if (family_check_fixed(in, fixed) ||
        json_number(in->json, in->path, "factor", 1e-3, 1e6, &config->rope_factor, in->e) ||
        json_number(in->json, in->path, original, 1, 1e9, &config->rope_original_context, in->e) ||
        read_or(in, "beta_fast", 32, 1e-6, &config->rope_high_freq) ||
        read_or(in, "beta_slow", 1, 1e-6, &config->rope_low_freq) ||
        read_or(in, "llama_4_scaling_beta", 0, 0, &config->rope_beta) ||
        read_or(in, "max_position_embeddings", context, 1, &again) || read_attention(config, in))
        return -1;
    if (config->rope_high_freq <= config->rope_low_freq)
        return family_refuse(in, "beta_fast", "more than beta_slow");
    if (again != context && again != config->rope_original_context)
        return family_refuse(in, "max_position_embeddings", "the one of config.json, or "
                             "original_max_position_embeddings");
    const int read_before = config->rope_beta > 0 && context == config->rope_original_context;
    if (context != config->rope_factor * config->rope_original_context && !read_before)
        return family_refuse(in, "factor", "max_position_embeddings / "
                             "original_max_position_embeddings");
    if (config->rope_beta > 0 && context > config->rope_original_context)
        config->context = (size_t)config->rope_original_context;
    return 0;
}

int family_read_rope(struct config *config, const struct family_source *source, const char *key)
{
    static const char *const members[] = {
        "rope_type", "type", "rope_theta", "factor", "low_freq_factor", "high_freq_factor",
        "original_max_position_embeddings", "partial_rotary_factor", NULL};
    static const char *const of_yarn[] = {
        "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "attention_factor", "truncate",
        "llama_4_scaling_beta", "max_position_embeddings", NULL};
    static const struct family_fixed fixed[] = {{"partial_rotary_factor", "1.0", KEY_READ}, {0}};
    if (!json_has(source->json, key))
        return 0;
    char *where = mem_format("%s: %s", source->path, key);
    const struct family_source in = {json_object_get(source->json, key), where, source->e};
    const char *type = "default", *member;
    json_t *value;
    const char *type_key = json_has(in.json, "rope_type") ? "rope_type" : "type";
    int bad = !json_is_object(in.json)      ? family_refuse(source, key, "null or an object")
              : json_has(in.json, type_key) ? json_text(in.json, where, type_key, &type, source->e)
                                            : 0;
    const int yarn = !strcmp(type, "yarn"), llama3 = !strcmp(type, "llama3");
    const int linear = !strcmp(type, "linear"), plain = !strcmp(type, "default");
    const int shares = family_lists(config->family->finished, "partial_rotary_factor");
    if (!bad && !plain && !config->family->rope_scaling)
        bad = family_refuse(source, key, "no such key: another rotation is not supported here");
    config->rope_yarn |= yarn;
    config->rope_llama3 |= llama3;
    config->rope_linear |= linear;
    if (!bad && config->rope_yarn + config->rope_llama3 + config->rope_linear > 1)
        bad = family_refuse(source, key, "one type, not two");
    if (!bad)
        json_object_foreach((json_t *)in.json, member, value)
            if (!bad && !json_is_null(value) && !family_lists(members, member) &&
                !(yarn && family_lists(of_yarn, member)))
                bad = family_refuse(&in, member, "no such key: it is not supported");
    if (!bad && json_has(in.json, "rope_theta"))
        bad = json_number(in.json, where, "rope_theta", 1, 1e12, &config->rope_theta, source->e);
    bad = bad || (!shares && family_check_fixed(&in, fixed));
    if (!bad)
        bad = llama3 ? read_llama3(config, &in)
              : yarn ? read_yarn(config, &in)
              : linear
                  ? json_number(in.json, where, "factor", 1, 1e6, &config->rope_factor, source->e)
              : plain ? 0
                      : family_refuse(&in, type_key,
                                      "\"default\", \"llama3\", \"yarn\" or "
                                      "\"linear\": others are not supported");
    free(where);
    return bad;
}

int family_needs_yarn(struct config *config, const struct family_source *source)
{
    const char *key = json_has(source->json, "rope_scaling") ? "rope_scaling" : "rope_parameters";
    return config->rope_yarn ? 0 : family_refuse(source, key, "an object with rope_type \"yarn\"");
}
