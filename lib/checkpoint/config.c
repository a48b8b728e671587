/* config.c - parameter counts and rotary frequencies of a shape.
 *
 * The frequencies are computed in fp32, in the same steps as in the training of the published
 * models: the weights depend on their last bits. */
#include "lib/checkpoint/config.h"

#include <math.h>
#include <string.h>

const char *config_paradigm_name(enum paradigm p)
{
    static const char *const names[] = {"autoregressive", "masked_diffusion", "block_diffusion",
                                        "latent"};
    return names[p];
}

int config_denoises(const struct config *c)
{
    return c->paradigm == PARADIGM_MASKED_DIFFUSION || c->paradigm == PARADIGM_BLOCK_DIFFUSION;
}

void config_write_left_to_right(struct config *c)
{
    if (!c->two_ways)
        return;
    c->paradigm = PARADIGM_AUTOREGRESSIVE;
    c->attends = MASK_CAUSAL;
    c->attends_block = 0;
    c->attends_from_end = c->attends_prompt = c->attends_filled = c->seeds = 0;
    c->logit_shift = 1;
}

void config_set_blocks(struct config *c, size_t B)
{
    c->paradigm = B ? PARADIGM_BLOCK_DIFFUSION : PARADIGM_MASKED_DIFFUSION;
    c->attends = B ? MASK_BLOCK_CAUSAL : MASK_FULL;
    c->attends_block = B;
    c->attends_filled = B > 0;
    if (c->attends_prompt)
        c->attends_from_end = B > 0;
}

const char *config_mixer_name(enum mixer m)
{
    static const char *const names[MIXERS] = {"swa", "rwkv6", "rwkv7"};
    return names[m];
}

int config_recurs(const struct config *c)
{
    return c->mixer != MIXER_ATTENTION;
}

int config_leaves_unrotated(const struct config *c)
{
    return memchr(c->unrotated, 1, c->layers) != NULL;
}

int config_mixes(const struct config *c, size_t l)
{
    return c->experts > 0 && l >= c->dense;
}

size_t config_ffn(const struct config *c, size_t l)
{
    return c->experts && l < c->dense ? c->dense_ffn : c->ffn;
}

size_t config_ffn_most(const struct config *c)
{
    size_t most = c->ffn > c->shared ? c->ffn : c->shared;
    return c->dense && c->dense_ffn > most ? c->dense_ffn : most;
}

size_t config_state(const struct config *c)
{
    return c->heads * c->head_dim * c->head_dim + c->width;
}

/* Parameters of a layer's mixer without r, k, v and o. */
static size_t mixer_parameters(const struct config *c)
{
    size_t D = c->width, q = c->heads * c->head_dim, low = c->rank * (D + q);
    if (c->mixer == MIXER_RWKV6)
        return 6 * D + 4 * q + 10 * c->rank * D + q * D + low;
    return c->mixer == MIXER_RWKV7 ? 6 * D + 8 * q + 4 * low : 0;
}

/* Parameters of a layer's experts and their router. */
static size_t mixture_parameters(const struct config *c)
{
    return 3 * (c->experts * c->ffn + c->shared) * c->width + c->experts * c->width +
           (c->groups ? c->experts : 0);
}

size_t config_answers(const struct config *c)
{
    return c->answers ? c->answers : c->vocab;
}

/* The inputs of layers 2, n / 2 and n - 3 are the outputs of those before. Source: SafeAILab/EAGLE,
 * modeling_llama_kv.py; the three differ from 7 layers on. */
int config_read_layers(struct config *c, size_t layers)
{
    if (layers < 7)
        return -1;
    c->tap[0] = 1;
    c->tap[1] = layers / 2 - 1;
    c->tap[2] = layers - 4;
    return 0;
}

size_t config_parameters(const struct config *c)
{
    size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    size_t layer = 2 * c->width + 2 * q * c->width + 2 * kv * c->width, feeds = 0;
    for (size_t l = 0; l < c->layers; l++)
        feeds += config_mixes(c, l) ? mixture_parameters(c) : 3 * config_ffn(c, l) * c->width;
    layer += c->chains ? (q + 2 * kv) * c->width : 0; /* the other half of its inputs */
    layer += (c->qkv_bias ? q + 2 * kv : 0) + (c->qk_norm ? 2 * c->head_dim : 0);
    layer += mixer_parameters(c);
    layer += c->latents ? c->width + 2 * q * c->width + 2 * kv * c->width : 0;
    const size_t own = c->taps ? (size_t)c->embeds : c->tied ? 1 : 2; /* embedding and head */
    const size_t head = c->chains ? config_answers(c) * c->width : 0;
    const size_t read = c->taps ? (c->taps * c->width + 1) * c->width : 0; /* fc, its norm */
    return own * c->vocab * c->width + c->layers * layer + feeds + c->width + read + head;
}

/* The index of the frequency that makes `turns` turns over the original context; not always a whole
 * number. */
static double place_of(const struct config *c, double turns)
{
    return (double)c->head_dim * log(c->rope_original_context / (turns * 2 * M_PI)) /
           (2 * log(c->rope_theta));
}

/* f_j with YaRN. The bounds are whole indices, in double; the blend is in fp32. */
static float stretch(const struct config *c, size_t j, float wave_length)
{
    double first = fmax(floor(place_of(c, c->rope_high_freq)), 0);
    double last = fmin(ceil(place_of(c, c->rope_low_freq)), (double)c->head_dim - 1);
    if (first == last)
        last += 0.001;
    float over = ((float)j - (float)first) / (float)(last - first);
    float keep = 1 - fminf(fmaxf(over, 0), 1);
    return 1 / ((float)c->rope_factor * wave_length) * (1 - keep) + 1 / wave_length * keep;
}

void config_rope(const struct config *c, float *inv_freq)
{
    const float theta = (float)c->rope_theta, factor = (float)c->rope_factor;
    const float low = (float)c->rope_low_freq, high = (float)c->rope_high_freq;
    const float context = (float)c->rope_original_context;
    for (size_t j = 0; j < c->head_dim / 2; j++) {
        float f = j < c->rope_dims / 2
                      ? 1.0f / powf(theta, (float)(2 * j) / (float)c->rope_dims)
                      : 0;
        float wave = 6.28318530717958647692f / f;
        if (c->rope_llama3 && wave > context / low) {
            f /= factor;
        } else if (c->rope_llama3 && wave >= context / high) {
            float s = (context / wave - low) / (high - low);
            f = (1 - s) * f / factor + s * f;
        } else if (c->rope_linear) {
            f /= factor;
        } else if (c->rope_yarn) {
            f = stretch(c, j, powf(theta, (float)(2 * j) / (float)c->head_dim));
        }
        inv_freq[j] = f;
    }
}

float config_rope_scale(const struct config *c)
{
    return c->rope_scale > 0 ? (float)c->rope_scale : 1;
}
