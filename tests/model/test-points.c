/* test-points.c - tests points of the decoders: which points are refused, where each setting has an
 * effect, and that a decoder runs a point like the inner generator with the same values. */
#include "lib/decode/autoregress.h"
#include "lib/decode/decoder.h"
#include "lib/decode/diffuse.h"
#include "lib/setting/system.h"
#include "tests/model/decoded.h"

static void refused(const char *options, const char *because)
{
    struct err e = {0};
    struct settings s = decoded_point(&decoder_diffuse, options);
    int bad = settings_check(&s, &e);
    ok(!bad == !because && (!because || (e.code == EXIT_BAD_USAGE && strstr(e.text, because))),
       "%s: %s", options, bad ? e.text : "accepted");
}

static void test_check(void)
{
    refused("gen_length=16", NULL);
    refused("gen_length=16 block_length=5", "multiple of block-length");
    refused("gen_length=16 block_length=4 steps=6", "multiple of the number of blocks");
    refused("gen_length=16 block_length=4 steps=6 unmask=threshold", NULL);
    refused("gen_length=16 block_length=4 steps=2 unmask=factor", NULL);
    refused("remasking=random", NULL);
    refused("remasking=random unmask=factor", "schedule only");
    refused("order=margin unmask=factor cache=prefix", NULL);
}

static int counts(const struct settings *s, const char *name)
{
    return settings_counts(s, settings_find(s->table, name));
}

static void test_axes(void)
{
    struct settings s = decoded_point(&decoder_diffuse, "steps=8"),
                    t = decoded_point(&decoder_diffuse, "unmask=threshold"),
                    f = decoded_point(&decoder_diffuse, "unmask=factor remasking=random");
    ok(!strcmp(settings_axis(&s), "steps") && counts(&s, "order") && !counts(&s, "threshold"),
       "a schedule is swept along steps");
    ok(!strcmp(settings_axis(&t), "threshold") && !counts(&t, "steps") && !counts(&t, "factor"),
       "a threshold along itself, and steps are none of its settings");
    ok(!strcmp(settings_axis(&f), "factor") && !counts(&f, "order"),
       "a factor too; by chance there is no order");
}

static void test_shorten(void)
{
    struct settings s = decoded_point(&decoder_diffuse,
                                      "gen_length=64 block_length=16 steps=32 batch=4");
    decoder_diffuse.shorten(&s);
    ok(settings_count(&s, "gen_length") == 16 && settings_count(&s, "block_length") == 16 &&
           settings_count(&s, "steps") == 8 && settings_count(&s, "batch") == 1 &&
           !settings_check(&s, NULL) && system_extent(&s) == 16,
       "a canvas becomes one block with its share of the steps");
    s = decoded_point(&decoder_diffuse,
                      "gen_length=64 block_length=16 steps=2 unmask=threshold batch=4");
    decoder_diffuse.shorten(&s);
    ok(settings_count(&s, "gen_length") == 16 && settings_is(&s, "unmask", "threshold"),
       "by a rule without steps too");
    s = decoded_point(&decoder_autoregress, "max_new=99 batch=3");
    decoder_autoregress.shorten(&s);
    ok(system_extent(&s) == 16 && settings_count(&s, "batch") == 1,
       "a text is shortened to 16 tokens");
    s = decoded_point(&decoder_autoregress, "max_new=5");
    decoder_autoregress.shorten(&s);
    ok(system_extent(&s) == 5, "a text of 5 tokens keeps its length");
}

static int same(struct generation *a, struct generation *b)
{
    int equal = a->n == b->n && a->n > 0 && !memcmp(a->ids, b->ids, a->n * sizeof *a->ids) &&
                a->rows == b->rows;
    generation_free(a);
    generation_free(b);
    return equal;
}

static void same_canvas(const struct network *n, const char *options, struct diffuse how)
{
    const struct settings s = decoded_point(&decoder_diffuse, options);
    const struct decode_env env = {.seed = how.seed};
    struct generation a = {0}, b = {0};
    struct batch_trace t = {0}, u = {0};
    decoder_diffuse.run(n, &s, &env, prompts, 1, &a, &t);
    diffuse(n, &how, prompts, 1, &b, &u);
    struct memory_estimate m = decoder_diffuse.estimate(n, &s, &env, prompts, 1);
    ok(same(&a, &b) && !memcmp(&m, &u.estimate, sizeof m), "%s", options);
}

static void test_diffuse(const struct network *n)
{
    const struct diffuse base = {.gen_length = 16, .block_length = 8, .steps = 4, .seed = 9};
    struct diffuse how = base;
    same_canvas(n, "gen_length=16 block_length=8 steps=4", how);
    how.order = ORDER_MARGIN;
    how.cfg_scale = 0.5;
    same_canvas(n, "gen_length=16 block_length=8 steps=4 order=margin cfg_scale=0.5", how);
    how = base;
    how.order = ORDER_RANDOM;
    how.temperature = 0.5;
    same_canvas(n, "gen_length=16 block_length=8 steps=4 remasking=random temperature=0.5", how);
    how = base;
    how.rule = UNMASK_FACTOR;
    how.unmask.factor = 1.9;
    how.cache = CACHE_PREFIX;
    same_canvas(n, "gen_length=16 block_length=8 unmask=factor factor=1.9 cache=prefix", how);
    how = base;
    how.rule = UNMASK_THRESHOLD;
    how.unmask.threshold = 0.0031;
    how.logits_eos_inf = how.confidence_eos_eot_inf = how.stop_at_eos = 1;
    same_canvas(n, "gen_length=16 block_length=8 unmask=threshold threshold=0.0031 "
                "logits_eos_inf=on confidence_eos_eot_inf=on contract=answer", how);
}

static void test_autoregress(const struct network *n)
{
    const struct settings s = decoded_point(&decoder_autoregress,
                                            "max_new=7 temperature=0.8 top_k=9 top_p=0.7 "
                                            "contract=fixed cache=off");
    const struct autoregress how = {.max_new = 7, .sample = {0.8, 9, 0.7}, .ignore_eos = 1,
                                    .seed = 4};
    const struct decode_env env = {.seed = 4};
    struct generation a = {0}, b = {0};
    struct batch_trace t = {0}, u = {0};
    decoder_autoregress.run(n, &s, &env, prompts, 1, &a, &t);
    autoregress(n, &how, prompts, 1, &b, &u);
    struct memory_estimate m = decoder_autoregress.estimate(n, &s, &env, prompts, 1);
    ok(same(&a, &b) && !memcmp(&m, &u.estimate, sizeof m), "a text by its point");
}

static void with(const char *shape, void (*test)(const struct network *n))
{
    struct decoded m;
    decoded_open(&m, shape, "ref", NULL);
    test(&m.n);
    decoded_close(&m);
}

int main(void)
{
    test_check();
    test_axes();
    test_shorten();
    with("synth:tiny-llada", test_diffuse);
    with("synth:tiny-llama", test_autoregress);
    return tap_done();
}
