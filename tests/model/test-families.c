/* test-families.c - tests that the table of families is complete; that a saved checkpoint of each
 * shape loads; that fields which no code here computes are refused; and that RoPE agrees with a
 * definition in double precision. */
#include "lib/checkpoint/family.h"
#include "lib/checkpoint/synth.h"
#include "lib/decode/generation.h"
#include "tests/files.h"
#include "tests/tap.h"

/* Every row of the table has a name for each tensor that its block has, and a shape to try. */
static void test_rows(void)
{
    for (size_t i = 0; family_at(i); i++) {
        const struct family *f = family_at(i);
        int whole = f->name && f->architecture && f->model_type && f->numbers && f->fixed &&
                    f->tied_key && f->naming[0] && f->shapes[0].name && family_named(f->name) == f;
        for (int k = 0; whole && k < FAMILY_NAMINGS && f->naming[k]; k++)
            for (int r = 0; r < ROLE_COUNT; r++) {
                struct config c = f->start;
                c.layers = 1;
                whole &= !role_layers(&c, (enum role)r) || f->naming[k]->role[r];
            }
        ok(whole, "family %s is whole", f->name);
        for (size_t j = 0; family_at(j); j++)
            ok(i == j || (strcmp(f->name, family_at(j)->name) &&
                          strcmp(f->architecture, family_at(j)->architecture)),
               "families %s and %s differ in name and architecture", f->name, family_at(j)->name);
    }
    ok(!family_named("mamba"), "an unknown name is no family");
}

/* family_save() and then family_load() must give an equal struct. */
static void round_trip(const char *shape)
{
    struct config a, b;
    struct err e = {0};
    synth_config(&a, shape, &e);
    int r = family_save(&a, files_root, &e) || family_load(&b, files_root, NULL, &e);
    a.synth = 0;
    a.eot = b.eot; /* comes from the tokenizer, not from config.json */
    memcpy(a.name, b.name, sizeof a.name);
    ok(!r && a.family == b.family && a.paradigm == b.paradigm && a.qkv_bias == b.qkv_bias &&
           a.qk_norm == b.qk_norm && a.attends == b.attends && a.logit_shift == b.logit_shift &&
           a.attends_block == b.attends_block && a.attends_from_end == b.attends_from_end &&
           a.chains == b.chains && a.answers == b.answers && a.taps == b.taps &&
           a.seeds == b.seeds && a.two_ways == b.two_ways && a.window == b.window &&
           !memcmp(a.unrotated, b.unrotated, a.layers) &&
           a.experts == b.experts && a.used == b.used && a.shared == b.shared &&
           a.dense == b.dense && a.dense_ffn == b.dense_ffn && a.groups == b.groups &&
           a.groups_used == b.groups_used && a.router_scale == b.router_scale &&
           a.rope_dims == b.rope_dims && a.width == b.width && a.layers == b.layers &&
           a.heads == b.heads &&
           a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.ffn == b.ffn &&
           a.vocab == b.vocab && a.context == b.context && a.tied == b.tied, "%s: shape %s", shape,
       e.text);
    ok(a.norm_eps == b.norm_eps && a.rope_theta == b.rope_theta && a.rope_llama3 == b.rope_llama3 &&
           a.rope_yarn == b.rope_yarn && a.rope_beta == b.rope_beta &&
           a.rope_factor == b.rope_factor && a.rope_low_freq == b.rope_low_freq &&
           a.rope_high_freq == b.rope_high_freq && a.bos == b.bos && a.pad == b.pad &&
           a.rope_original_context == b.rope_original_context && a.mask == b.mask &&
           a.n_eos == b.n_eos && a.eos[0] == b.eos[0], "%s: numbers and ids", shape);
    a.n_eos = 0;
    e = (struct err){0};
    r = family_save(&a, files_root, &e);
    if (a.paradigm == PARADIGM_AUTOREGRESSIVE)
        ok(!r && !family_load(&b, files_root, NULL, &e) && !b.n_eos,
           "a config without eos loads %s", e.text);
    else
        ok(r == -1 && e.code, "without eos it is not written: %s", e.text);
}

static void test_shapes(void)
{
    static const char *const names[] = {"llada-8b", "llama3-8b", "llama3.2-1b", "llama3.2-3b",
                                        "llada-1b", "llada3.2-1b", "small-llama", "small-llada",
                                        "tiny-llama", "tiny-llada", "tiny-qwen2", "tiny-qwen3",
                                        "tiny-eagle3",
                                        "qwen2.5-0.5b", "qwen3-0.6b", "illada-8b", "tiny-illada",
                                        "tiny-a2d-llama",
                                        "tiny-a2d-qwen2", "tiny-a2d-qwen3", "qwen3-0.6b-mdlm",
                                        "tiny-sdar", "sdar-4b", "tiny-dream", "dream-7b",
                                        "tiny-fast-dllm", "fast-dllm-v2-1.5b", "tiny-mistral",
                                        "tiny-smollm3", "smollm3-3b", "smollm2-135m",
                                        "tiny-llada-moe", "llada-moe-7b-a1b",
                                        "tiny-nemotron", "nemotron-3b",
                                        "tiny-ministral3", "tiny-llada2", "llada2-mini",
                                        "tiny-ling", "ling-mini-2.0",
                                        "tiny-stable-diffcoder", "stable-diffcoder-8b"};
    struct config c;
    struct err e = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        round_trip(names[i]);
    ok(!synth_config(&c, "llada-8b", &e) && config_parameters(&c) == 8015581184u, "LLaDA 8B");
    ok(!synth_config(&c, "illada-8b", &e) && config_parameters(&c) == 7615025152u, "iLLaDA 8B");
    ok(!synth_config(&c, "qwen3-0.6b-bd3lm", &e) && c.attends == MASK_BLOCK_CAUSAL &&
           c.attends_block == 32 && c.attends_from_end && config_parameters(&c) == 596049920u,
       "bd3lm is a name");
    ok(!synth_config(&c, "dream-7b", &e) && config_parameters(&c) == 7615616512u, "Dream 7B");
    ok(!synth_config(&c, "fast-dllm-v2-1.5b", &e) && config_parameters(&c) == 1543714304u,
       "Fast-dLLM v2 1.5B");
    ok(!synth_config(&c, "smollm2-135m", &e) && config_parameters(&c) == 134515008u,
       "SmolLM2 135M");
    ok(!synth_config(&c, "tinyllama-1.1b", &e) && config_parameters(&c) == 1100048384u,
       "TinyLlama 1.1B");
    ok(!synth_config(&c, "llama2-7b", &e) && config_parameters(&c) == 6738415616u, "LLaMA 2 7B");
    ok(!synth_config(&c, "mistral-7b", &e) && config_parameters(&c) == 7248023552u,
       "Mistral 7B v0.3");
    ok(!synth_config(&c, "smollm3-3b", &e) && config_parameters(&c) == 3075098624u &&
           !c.unrotated[2] && c.unrotated[3] && c.unrotated[35], "SmolLM3 3B");
    ok(!synth_config(&c, "qwen2.5-7b", &e) && config_parameters(&c) == 7615616512u,
       "Qwen2.5 7B");
    ok(!synth_config(&c, "qwen2.5-1.5b", &e) && config_parameters(&c) == 1543714304u,
       "Qwen2.5 1.5B");
    ok(!synth_config(&c, "qwen3-4b", &e) && config_parameters(&c) == 4022468096u, "Qwen3 4B");
    ok(!synth_config(&c, "ministral3-3b", &e) && config_parameters(&c) == 3429006336u,
       "Ministral 3 3B");
    ok(!synth_config(&c, "llada-moe-7b-a1b", &e) && config_parameters(&c) == 7356880896u &&
           c.experts == 64 && c.used == 8, "LLaDA-MoE 7B-A1B");
    ok(!synth_config(&c, "llada2-mini", &e) && config_parameters(&c) == 16255643392u &&
           c.rope_dims == 64 && c.attends_block == 32 && !strcmp(c.family->name, "llada2"),
       "LLaDA2.0 mini");
    ok(!synth_config(&c, "llada2.1-mini", &e) && config_parameters(&c) == 16255643392u &&
           !strcmp(c.family->name, "llada2.1"), "LLaDA2.1 mini is a name");
    ok(!synth_config(&c, "nemotron-3b", &e) && config_parameters(&c) == 3831659520u &&
           c.context == 16384 && c.two_ways, "Nemotron-Labs-Diffusion 3B");
    config_write_left_to_right(&c);
    ok(!config_denoises(&c) && c.logit_shift && c.attends == MASK_CAUSAL &&
           !generation_refuses(&c, &e), "Nemotron also writes left to right: %s", e.text);
    ok(!synth_config(&c, "llama3-8b", &e) && config_parameters(&c) == 8030261248u, "LLaMA 3 8B");
    ok(!synth_config(&c, "llama3.2-1b", &e) && config_parameters(&c) == 1235814400u,
       "LLaMA 3.2 1B");
    ok(!synth_config(&c, "llama3.2-3b", &e) && config_parameters(&c) == 3212749824u,
       "LLaMA 3.2 3B");
    ok(!synth_config(&c, "qwen2.5-0.5b", &e) && config_parameters(&c) == 494032768u,
       "Qwen2.5 0.5B");
    ok(!synth_config(&c, "qwen3-0.6b", &e) && config_parameters(&c) == 596049920u, "Qwen3 0.6B");
    ok(synth_config(&c, "llama4", &e) == -1 && e.code == EXIT_BAD_USAGE &&
           strstr(e.text, "tiny-llada"),
       "an unknown shape: %s", e.text);
}

/* A combination of fields that no decoder or no kernel supports is refused with the reason. */
static void test_switches(void)
{
    static const struct {
        const char *shape;
        int shift;
        enum mask attends;
        const char *says;
    } list[] = {{"tiny-llada", 0, MASK_FULL, NULL},
                {"tiny-llada", 1, MASK_FULL, NULL},
                {"tiny-llada", 0, MASK_CAUSAL, "this attention mask is not supported"},
                {"tiny-qwen3", 1, MASK_CAUSAL, NULL},
                {"tiny-qwen3", 0, MASK_CAUSAL, "not shifted"},
                {"tiny-qwen2", 1, MASK_BLOCK_CAUSAL, "this attention mask is not supported"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct config c;
        struct err e = {0};
        synth_config(&c, list[i].shape, &e);
        c.logit_shift = list[i].shift;
        c.attends = list[i].attends;
        int r = generation_refuses(&c, &e);
        ok(list[i].says ? r == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, list[i].says) : !r,
           "%s: %s", list[i].shape, r ? e.text : "is decoded");
    }
    struct config block;
    struct err e = {0};
    synth_config(&block, "tiny-llada", &e);
    block.paradigm = PARADIGM_BLOCK_DIFFUSION;
    ok(generation_refuses(&block, &e) == -1,
       "block diffusion under a full mask is refused: %s", e.text);
    block.attends = MASK_BLOCK_CAUSAL;
    e = (struct err){0};
    ok(generation_refuses(&block, &e) == -1,
       "block diffusion in blocks of 0 tokens is refused: %s", e.text);
    block.attends_block = 4;
    e = (struct err){0};
    ok(!generation_refuses(&block, &e), "block diffusion in blocks of 4 is decoded");
}

/* rope_type llama3 (modeling_rope_utils.py of transformers): with E = 128, theta 5e5 and factor 8,
 * 29 frequencies stay, 6 blend, 29 are divided. */
static void test_rope(void)
{
    struct config c;
    struct err e = {0};
    float plain[64], scaled[64];
    int same = 0, divided = 0, between = 0, near = 1;
    synth_config(&c, "llama3-8b", &e);
    config_rope(&c, plain);
    for (int j = 0; j < 64; j++)
        near &= fabs(plain[j] * pow(5e5, j / 64.0) - 1) < 1e-5;
    ok(near && plain[0] == 1, "plain frequencies are theta^(-2j/E)");
    c.rope_llama3 = 1;
    c.rope_factor = 8;
    c.rope_low_freq = 1;
    c.rope_high_freq = 4;
    c.rope_original_context = 8192;
    config_rope(&c, scaled);
    for (int j = 0; j < 64; j++) {
        same += scaled[j] == plain[j];
        divided += scaled[j] == plain[j] / 8;
        between += scaled[j] < plain[j] && scaled[j] > plain[j] / 8;
    }
    ok(same == 29 && between == 6 && divided == 29,
       "llama3: %d as they are, %d blended, %d divided", same, between, divided);
    c.rope_llama3 = 0;
    for (int j = 0; j < 64; j++)
        c.rope_divisor[j] = plain[j] / scaled[j];
    config_rope(&c, plain);
    near = 1;
    for (int j = 0; j < 64; j++)
        near &= fabs(plain[j] / scaled[j] - 1) < 1e-6;
    ok(near, "the divisors of a GGUF file give the frequencies of llama3");
    ok(family_save(&c, files_root, &e) == -1 && e.code == EXIT_INTERNAL,
       "config.json has no key for divisors: %s", e.text);
}

/* A partial rotation: 8 of 16 values are rotated, at theta^(-2j/8). */
static void test_partial(void)
{
    struct config c;
    struct err e = {0};
    float f[8];
    int near = 1;
    synth_config(&c, "tiny-llada2", &e);
    config_rope(&c, f);
    for (int j = 0; j < 8; j++)
        near &= fabs(f[j] - (j < 4 ? pow(6e5, -j / 4.0) : 0)) < 1e-6;
    ok(near && c.head_dim == 16, "half of a head turns, half does not");
}

/* rope_type yarn with E = 128, theta 1e6, 16384 positions and factor 16. The bounds are the indices
 * 20 and 37 (20.3 and 36.4, computed independently), so 21 frequencies stay, 16 blend, 27 are
 * divided. */
static void test_yarn(void)
{
    struct config c;
    struct err e = {0};
    float plain[64], scaled[64];
    int same = 0, divided = 0, between = 0;
    synth_config(&c, "nemotron-3b", &e);
    config_rope(&c, scaled);
    c.rope_yarn = 0;
    config_rope(&c, plain);
    for (int j = 0; j < 64; j++) {
        double share = scaled[j] / plain[j];
        same += fabs(share - 1) < 1e-6;
        divided += fabs(share * 16 - 1) < 1e-6;
        between += fabs(share - 1) >= 1e-6 && fabs(share * 16 - 1) >= 1e-6;
    }
    ok(same == 21 && between == 16 && divided == 27, "yarn: %d as they are, %d blended, %d divided",
       same, between, divided);
}

/* A number at the end of the model's name is the length of a block. */
static void test_named_blocks(void)
{
    static const struct { const char *name; size_t block; } all[] = {
        {"x-b64", 64}, {"x-b1048576", 1048576}, {"x-b1048577", 4}, {"x-b999999999999", 4},
        {"x-b8b", 4}, {"x-b+8", 4}, {"x-b", 4}};
    struct err e = {0};
    struct config c;
    synth_config(&c, "tiny-sdar", &e);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        snprintf(c.name, sizeof c.name, "%s", all[i].name);
        c.family->named(&c);
        ok(c.attends_block == all[i].block, "%s: blocks of %zu", c.name, c.attends_block);
    }
}

/* A rotation that was saved in config.json is read again. */
static void test_saved_rotation(void)
{
    static const double scales[] = {0, 1.2};
    struct err e = {0};
    for (int i = 0; i < 3; i++) {
        struct config a, b;
        synth_config(&a, "tiny-qwen3", &e);
        a.rope_factor = 4;
        a.rope_linear = i == 2;
        a.rope_yarn = i < 2;
        a.rope_scale = i < 2 ? scales[i] : 0;
        a.rope_low_freq = 1;
        a.rope_high_freq = 32;
        a.rope_original_context = (double)a.context / 4;
        int r = family_save(&a, files_root, &e);
        r = r || family_load(&b, files_root, NULL, &e);
        ok(!r && config_rope_scale(&a) == config_rope_scale(&b) && b.rope_factor == 4 &&
               b.rope_linear == a.rope_linear && b.rope_yarn == a.rope_yarn,
           "rotation %d is written and read %s", i, e.text);
    }
}

int main(void)
{
    files_begin();
    test_saved_rotation();
    test_named_blocks();
    test_rows();
    test_shapes();
    test_switches();
    test_rope();
    test_partial();
    test_yarn();
    files_end();
    return tap_done();
}
