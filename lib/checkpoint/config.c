/* config.c - computes parameter counts and rotary frequencies of a shape.
 *
 * The frequencies are computed in fp32, in the same steps as when the published models were
 * trained, because the weights depend on the last bits of the frequencies. */
#include "lib/checkpoint/config.h"

#include <math.h>
#include <string.h>

const char *config_paradigm_name(enum paradigm paradigm)
{
    static const char *const names[] = {"autoregressive", "masked_diffusion", "block_diffusion",
                                        "latent"};
    return names[paradigm];
}

int config_denoises(const struct config *config)
{
    return config->paradigm == PARADIGM_MASKED_DIFFUSION ||
           config->paradigm == PARADIGM_BLOCK_DIFFUSION;
}

void config_write_left_to_right(struct config *config)
{
    if (!config->two_ways)
        return;
    config->paradigm = PARADIGM_AUTOREGRESSIVE;
    config->attends = MASK_CAUSAL;
    config->attends_block = 0;
    config->attends_from_end = config->attends_prompt = config->attends_filled = config->seeds = 0;
    config->logit_shift = 1;
}

void config_set_blocks(struct config *config, size_t B)
{
    config->paradigm = B ? PARADIGM_BLOCK_DIFFUSION : PARADIGM_MASKED_DIFFUSION;
    config->attends = B ? MASK_BLOCK_CAUSAL : MASK_FULL;
    config->attends_block = B;
    config->attends_filled = B > 0;
    if (config->attends_prompt)
        config->attends_from_end = B > 0;
}

const char *config_mixer_name(enum mixer mixer)
{
    static const char *const names[MIXERS] = {"swa", "rwkv6", "rwkv7"};
    return names[mixer];
}

int config_recurs(const struct config *config)
{
    return config->mixer != MIXER_ATTENTION;
}

int config_leaves_unrotated(const struct config *config)
{
    return memchr(config->unrotated, 1, config->layers) != NULL;
}

int config_mixes(const struct config *config, size_t layer)
{
    return config->experts > 0 && layer >= config->dense;
}

size_t config_ffn(const struct config *config, size_t layer)
{
    return config->experts && layer < config->dense ? config->dense_ffn : config->ffn;
}

size_t config_ffn_most(const struct config *config)
{
    size_t most = config->ffn > config->shared ? config->ffn : config->shared;
    return config->dense && config->dense_ffn > most ? config->dense_ffn : most;
}

size_t config_state(const struct config *config)
{
    return config->heads * config->head_dim * config->head_dim + config->width;
}

/* Number of parameters of a layer's mixer without r, k, v and o. */
static size_t mixer_parameters(const struct config *config)
{
    size_t D = config->width, q = config->heads * config->head_dim, low = config->rank * (D + q);
    if (config->mixer == MIXER_RWKV6)
        return 6 * D + 4 * q + 10 * config->rank * D + q * D + low;
    return config->mixer == MIXER_RWKV7 ? 6 * D + 8 * q + 4 * low : 0;
}

/* Number of parameters of a layer's experts and their router. */
static size_t mixture_parameters(const struct config *config)
{
    return 3 * (config->experts * config->ffn + config->shared) * config->width +
           config->experts * config->width + (config->groups ? config->experts : 0);
}

size_t config_answers(const struct config *config)
{
    return config->answers ? config->answers : config->vocab;
}

/* With n layers the drafter reads the inputs of layers 2, n / 2 and n - 3, counted from 0. These
 * are the outputs of layers 1, n / 2 - 1 and n - 4, which differ if n >= 7. Source:
 * SafeAILab/EAGLE, modeling_llama_kv.py. */
int config_read_layers(struct config *config, size_t layers)
{
    if (layers < 7)
        return -1;
    config->tap[0] = 1;
    config->tap[1] = layers / 2 - 1;
    config->tap[2] = layers - 4;
    return 0;
}

size_t config_parameters(const struct config *config)
{
    size_t queries = config->heads * config->head_dim, kv = config->kv_heads * config->head_dim;
    size_t layer = 2 * config->width + 2 * queries * config->width + 2 * kv * config->width,
           feeds = 0;
    for (size_t number = 0; number < config->layers; number++)
        feeds += config_mixes(config, number) ? mixture_parameters(config)
                                              : 3 * config_ffn(config, number) * config->width;
    /* with chains, q, k and v have 2 D columns (role.h) */
    layer += config->chains ? (queries + 2 * kv) * config->width : 0;
    layer += (config->qkv_bias ? queries + 2 * kv : 0) +
             (config->qk_norm ? 2 * config->head_dim : 0);
    layer += mixer_parameters(config);
    layer += config->latents ? config->width + 2 * queries * config->width + 2 * kv * config->width
                             : 0;
    const size_t own = config->taps   ? (size_t)config->embeds
                       : config->tied ? 1
                                      : 2; /* embedding and head */
    const size_t head = config->chains ? config_answers(config) * config->width : 0;
    /* ROLE_FUSE and ROLE_FUSE_NORM */
    const size_t read = config->taps ? (config->taps * config->width + 1) * config->width : 0;
    return own * config->vocab * config->width + config->layers * layer + feeds + config->width +
           read + head;
}

/* The index j, not always a whole number, of the frequency that makes `turns` turns over the
 * original context: theta^(-2j/E) * context = 2 pi turns. */
static double place_of(const struct config *config, double turns)
{
    return (double)config->head_dim * log(config->rope_original_context / (turns * 2 * M_PI)) /
           (2 * log(config->rope_theta));
}

/* Frequency j with YaRN; wave_length = theta^(2j/E). Frequencies before index `first` are kept,
 * those after index `last` are divided by the factor, those between are blended. The two indices
 * are whole numbers, computed in double; the blend is in fp32. */
static float stretch(const struct config *config, size_t j, float wave_length)
{
    double first = fmax(floor(place_of(config, config->rope_high_freq)), 0);
    double last = fmin(ceil(place_of(config, config->rope_low_freq)), (double)config->head_dim - 1);
    if (first == last)
        last += 0.001;
    float over = ((float)j - (float)first) / (float)(last - first);
    float keep = 1 - fminf(fmaxf(over, 0), 1);
    return 1 / ((float)config->rope_factor * wave_length) * (1 - keep) + 1 / wave_length * keep;
}

void config_rope(const struct config *config, float *inv_freq)
{
    const float theta = (float)config->rope_theta, factor = (float)config->rope_factor;
    const float low = (float)config->rope_low_freq, high = (float)config->rope_high_freq;
    const float context = (float)config->rope_original_context;
    for (size_t j = 0; j < config->head_dim / 2; j++) {
        float frequency = j < config->rope_dims / 2
                              ? 1.0f / powf(theta, (float)(2 * j) / (float)config->rope_dims)
                              : 0;
        float wave = 6.28318530717958647692f / frequency;
        if (config->rope_llama3 && wave > context / low) {
            frequency /= factor;
        } else if (config->rope_llama3 && wave >= context / high) {
            float share = (context / wave - low) / (high - low);
            frequency = (1 - share) * frequency / factor + share * frequency;
        } else if (config->rope_linear) {
            frequency /= factor;
        } else if (config->rope_yarn) {
            frequency = stretch(config, j, powf(theta, (float)(2 * j) / (float)config->head_dim));
        } else if (config->rope_divisor[0] > 0 && j < config->rope_dims / 2) {
            frequency /= config->rope_divisor[j];
        }
        inv_freq[j] = frequency;
    }
}

float config_rope_scale(const struct config *config)
{
    return config->rope_scale > 0 ? (float)config->rope_scale : 1;
}
