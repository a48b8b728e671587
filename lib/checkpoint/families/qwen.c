/* qwen.c - Qwen2, Qwen2.5, Qwen3, and the denoisers that were made from these models. Qwen2 (Yang
 * et al. 2024, arXiv 2412.15115) is LLaMA's block with a bias on q, k and v, which no key of
 * config.json states. Qwen3 (Yang et al. 2025, arXiv 2505.09388) has no bias, but an RMSNorm on the
 * q and k of each head before the rotation, and heads of 128 at every width. A denoiser has the
 * tensors and keys of the model from which it was made:
 *
 *   a2d-qwen2, a2d-qwen3: see FAMILY_A2D. Confirmed in ZHZisZZ/dllm: class, type and full mask in
 *     a2d/models/, tensors in convert.py, blocks from the end of the prompt and the pace `rounded`
 *     in core/samplers/. Public notes on the released files have the mask 151669 and the other ids.
 *   sdar: SDAR (Cheng et al. 2025, arXiv 2510.06303). Blocks are counted from the first id; the
 *     last block is whole; the block in which the prompt ends is filled first. Confirmed in
 *     JetAstra/SDAR: class and block in training/model/SDAR-4B-Chat/modeling_sdar.py, sampler and
 *     its defaults in generate.py. No released file states the block length 4 (files of
 *     training/model have it as block_size). A model with another block length has a name that ends
 *     with this length (-b64). A model with I-DLM in its name is Introspective Diffusion (Yu et al.
 *     2026, arXiv 2604.11035): this model is causal and its answers are shifted by one, so
 *     gen-llama runs it. Confirmed in a copy of I-DLM (github.com/thuEcstasy/I-DLM): class and keys
 *     in training/model/Qwen3-8B-b3-allmasked, the passes of --self-draft in
 *     inference/sglang/.../idlm_blockN.py.
 *   dream: Dream, Dream-Coder (Ye et al. 2025, arXiv 2508.15487) and DiffuCoder (arXiv 2506.20639),
 *     made from Qwen2.5: full mask, answers shifted by one. Confirmed in NVlabs/Fast-dLLM: class
 *     and bias in dream/model/modeling_dream.py, keys in configuration_dream.py, samplers in
 *     generation_utils.py. README.md of DreamLM/Dream has the options. sample_tokens() of Dream
 *     applies top-p before top-k. It computes confidences from the probabilities that these two
 *     keep, at temperature 0 too.
 *   fast-dllm-v2: Fast-dLLM v2 (Wu et al. 2025, arXiv 2509.26328), made from Qwen2.5: blocks of
 *     bd_size, counted from the first id, filled in parts of 8, answers shifted by one; the first
 *     token of a whole block is predicted from the block before. Confirmed: class, bias, mask and
 *     sampler in public copies of its modeling.py, the default threshold in v2/run_chatbot.py of
 *     NVlabs/Fast-dLLM. The authors' code loses a prompt of exactly bd_size ids; this program does
 *     not.
 *
 * Shapes: the published config.json; tiny-* are made by this project. sdar-4b has the sizes of
 * Qwen3-4B, fast-dllm-v2-1.5b of Qwen2.5-1.5B, dream-7b of Qwen2.5-7B. */
#include "lib/checkpoint/family.h"

#include <stdlib.h>
#include <string.h>

#include "lib/record/json.h"

static const struct family_fixed fixed_2[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"use_sliding_window", "false", KEY_WRITTEN},
    {"use_mrope", "false", KEY_READ},
    {0},
};

static const struct family_fixed fixed_3[] = {
    {"hidden_act", "\"silu\"", KEY_WRITTEN},
    {"attention_bias", "false", KEY_WRITTEN},
    {"use_sliding_window", "false", KEY_WRITTEN},
    {0},
};

/* Keys of the sliding window, which is not used, and keys that concern training only. */
static const char *const ignored[] = {
    "sliding_window", "max_window_layers", "ep_size", "micro_forward", "skip_checkpoint",
    "use_deepep", "fuse_cross_entropy", "debug", "conplemenrary_mask", "complementary_mask", NULL};

static const struct family_shape qwen2_shapes[] = {
    {"qwen2.5-0.5b", 896, 24, 14, 2, 64, 4864, 151936, 32768, 1, 1e-6, 1e6, 0,
     151643, 151643, -1, 151645},
    {"qwen2.5-1.5b", 1536, 28, 12, 2, 128, 8960, 151936, 32768, 1, 1e-6, 1e6, 0,
     151643, 151643, -1, 151645},
    {"qwen2.5-7b", 3584, 28, 28, 4, 128, 18944, 152064, 32768, 0, 1e-6, 1e6, 0,
     151643, 151643, -1, 151645},
    {"tiny-qwen2", 64, 2, 4, 2, 16, 128, 512, 512, 1, 1e-6, 1e6, 0, 508, 509, -1, 511},
    {0},
};

static const struct family_shape qwen3_shapes[] = {
    {"qwen3-0.6b", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1, 1e-6, 1e6, 0,
     151643, 151645, -1, 151645},
    {"qwen3-4b", 2560, 36, 32, 8, 128, 9728, 151936, 40960, 1, 1e-6, 1e6, 0,
     151643, 151645, -1, 151645},
    {"tiny-qwen3", 64, 2, 4, 2, 32, 128, 512, 512, 0, 1e-6, 1e6, 0, 508, 509, -1, 511},
    {0},
};

static const struct family_shape a2d_qwen2_shapes[] = {
    {"tiny-a2d-qwen2", 64, 2, 4, 2, 16, 128, 512, 512, 1, 1e-6, 1e6, 0, 508, 509, 510, 511},
    {0},
};

static const struct family_shape a2d_qwen3_shapes[] = {
    {"qwen3-0.6b-mdlm", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1, 1e-6, 1e6, 0,
     151643, 151645, 151669, 151645},
    {"qwen3-0.6b-bd3lm", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1, 1e-6, 1e6, 0,
     151643, 151645, 151669, 151645},
    {"tiny-a2d-qwen3", 64, 2, 4, 2, 32, 128, 512, 512, 0, 1e-6, 1e6, 0, 508, 509, 510, 511},
    {0},
};

static const struct family_shape sdar_shapes[] = {
    {"sdar-4b", 2560, 36, 32, 8, 128, 9728, 151936, 32768, 1, 1e-6, 1e6, 0,
     151643, 151645, 151669, 151645},
    {"tiny-sdar", 64, 2, 4, 2, 32, 128, 512, 512, 0, 1e-6, 1e6, 0, 508, 509, 510, 511},
    {0},
};

static const struct family_shape dream_shapes[] = {
    {"dream-7b", 3584, 28, 28, 4, 128, 18944, 152064, 131072, 0, 1e-6, 1e6, 0,
     151643, 151643, 151666, 151645},
    {"tiny-dream", 64, 2, 4, 2, 16, 128, 512, 512, 0, 1e-6, 1e6, 0, 508, 509, 510, 511},
    {0},
};

static const struct family_shape fast_dllm_shapes[] = {
    {"fast-dllm-v2-1.5b", 1536, 28, 12, 2, 128, 8960, 151936, 32768, 1, 1e-6, 1e6, 0,
     151643, 151645, 151665, 151645},
    {"tiny-fast-dllm", 64, 2, 4, 2, 16, 128, 512, 512, 1, 1e-6, 1e6, 0, 508, 509, 510, 511},
    {0},
};

static const struct family_number fast_dllm_numbers[] = {
    FAMILY_HUGGING_FACE_NUMBERS,
    {"bd_size", FAMILY_AT(attends_block), 1, 1 << 20, KEY_WRITTEN},
    {0},
};

enum { BLOCK_MOST = 1 << 20 };

/* The block length at the end of the name: 64 in "SDAR-4B-Chat-b64"; 0: the name states none. */
static size_t named_block(const struct config *config)
{
    const char *mark = strrchr(config->name, '-');
    if (!mark || mark[1] != 'b' || mark[2] < '0' || mark[2] > '9')
        return 0;
    char *end;
    const size_t block = strtoul(mark + 2, &end, 10);
    return *end || block > BLOCK_MOST ? 0 : block;
}

static void name_sdar(struct config *config)
{
    const size_t block = named_block(config);
    config_set_blocks(config, block ? block : 4);
}

static const char *const sdar_finished[] = {"block_size", NULL};

/* Released files have no block_size. Files from which the authors train have it: the block of the
 * mask. A length in the name goes first, because -b64 is trained from files that state 4. In files
 * of I-DLM block_size concerns only training, so it is not used. */
static int finish_sdar(struct config *config, const struct family_source *source)
{
    int64_t block;
    if (!strstr(config->name, "I-DLM")) {
        if (!json_has(source->json, "block_size") || named_block(config))
            return 0;
        if (json_int(source->json, source->path, "block_size", 1, BLOCK_MOST, &block, source->e))
            return -1;
        config_set_blocks(config, (size_t)block);
        return 0;
    }
    config->attends = MASK_CAUSAL;
    config->attends_block = 0;
    config->two_ways = config->drafts_causal = config->logit_shift = 1;
    return 0;
}

/* start_members: the members of `start` in which the families differ. */
#define QWEN(its_numbers, version, its_name, class, type, start_members, ...)                      \
    {.name = its_name, .architecture = class, .model_type = type,                                  \
     .naming = {&family_hugging_face},                                                             \
     .start = {start_members, QWEN_##version, .chat = CHAT_CHATML, .rope_theta = 10000,            \
               .context = 32768, .norm_eps = 1e-6},                                                \
     .numbers = its_numbers, .fixed = fixed_##version,                                             \
     .tied_key = "tie_word_embeddings", .rope_scaling = 1, .ignored = ignored, __VA_ARGS__}
#define NUMBERS family_hugging_face_numbers
#define QWEN_2 .qkv_bias = 1
#define QWEN_3 .qk_norm = 1, .head_dim = 128
#define LEFT_TO_RIGHT                                                                              \
    .paradigm = PARADIGM_AUTOREGRESSIVE, .attends = MASK_CAUSAL, .logit_shift = 1
#define BLOCKS .paradigm = PARADIGM_BLOCK_DIFFUSION, .attends = MASK_BLOCK_CAUSAL
#define SHIFTED                                                                                    \
    .paradigm = PARADIGM_MASKED_DIFFUSION, .attends = MASK_FULL, .logit_shift = 1, .top_p_of_all = 1
#define SHIFTED_BLOCKS BLOCKS, .attends_block = 32, .logit_shift = 1, .seeds = 1

const struct family qwen2_family =
    QWEN(NUMBERS, 2, "qwen2", "Qwen2ForCausalLM", "qwen2", LEFT_TO_RIGHT, .shapes = qwen2_shapes,
         .denoiser = &a2d_qwen2_family);
const struct family qwen3_family =
    QWEN(NUMBERS, 3, "qwen3", "Qwen3ForCausalLM", "qwen3", LEFT_TO_RIGHT, .shapes = qwen3_shapes,
         .denoiser = &a2d_qwen3_family);
const struct family a2d_qwen2_family =
    QWEN(NUMBERS, 2, "a2d-qwen2", "A2DQwen2LMHeadModel", "a2d-qwen2", FAMILY_DENOISES,
         .shapes = a2d_qwen2_shapes, FAMILY_A2D);
const struct family a2d_qwen3_family =
    QWEN(NUMBERS, 3, "a2d-qwen3", "A2DQwen3LMHeadModel", "a2d-qwen3", FAMILY_DENOISES,
         .shapes = a2d_qwen3_shapes, FAMILY_A2D);
const struct family sdar_family =
    QWEN(NUMBERS, 3, "sdar", "SDARForCausalLM", "sdar", BLOCKS, .shapes = sdar_shapes,
         .mask_token = "<|MASK|>", .named = name_sdar, .finished = sdar_finished,
         .finish = finish_sdar,
         .defaults = "unmask=dynamic threshold=0.85 temperature=1 confidence_of=drawn");
const struct family dream_family =
    QWEN(NUMBERS, 2, "dream", "DreamModel", "Dream", SHIFTED, .shapes = dream_shapes,
         .defaults = "unmask=origin confidence_of=kept");
const struct family fast_dllm_family =
    QWEN(fast_dllm_numbers, 2, "fast-dllm-v2", "Fast_dLLM_QwenForCausalLM", "Fast_dLLM_Qwen",
         SHIFTED_BLOCKS, .shapes = fast_dllm_shapes, .mask_token = "|<MASK>|",
         .defaults =
             "block_length=8 unmask=dynamic threshold=0.9 top_p=0.95 confidence_of=drawn");
