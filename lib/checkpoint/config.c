/* config.c - parameter counts and rotary frequencies of a shape.
 *
 * The frequencies are computed in fp32, in the same steps as in the training of the published
 * models: the weights depend on their last bits.
 */
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

void config_set_blocks(struct config *c, size_t B)
{
    c->paradigm = B ? PARADIGM_BLOCK_DIFFUSION : PARADIGM_MASKED_DIFFUSION;
    c->attends = B ? MASK_BLOCK_CAUSAL : MASK_FULL;
    c->attends_block = B;
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

size_t config_parameters(const struct config *c)
{
    size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    size_t experts = c->experts ? c->experts : 1;
    size_t layer = 2 * c->width + 2 * q * c->width + 2 * kv * c->width +
                   3 * (experts * c->ffn + c->shared) * c->width + c->experts * c->width;
    layer += (c->qkv_bias ? q + 2 * kv : 0) + (c->qk_norm ? 2 * c->head_dim : 0);
    layer += mixer_parameters(c);
    layer += c->latents ? c->width + 2 * q * c->width + 2 * kv * c->width : 0;
    return (c->tied ? 1 : 2) * c->vocab * c->width + c->layers * layer + c->width;
}

void config_rope(const struct config *c, float *inv_freq)
{
    const float theta = (float)c->rope_theta, factor = (float)c->rope_factor;
    const float low = (float)c->rope_low_freq, high = (float)c->rope_high_freq;
    const float context = (float)c->rope_original_context;
    for (size_t j = 0; j < c->head_dim / 2; j++) {
        float f = 1.0f / powf(theta, (float)(2 * j) / (float)c->head_dim);
        float wave = 6.28318530717958647692f / f;
        if (c->rope_llama3 && wave > context / low) {
            f /= factor;
        } else if (c->rope_llama3 && wave >= context / high) {
            float s = (context / wave - low) / (high - low);
            f = (1 - s) * f / factor + s * f;
        }
        inv_freq[j] = f;
    }
}
