/* test-activity.c - tests that mean squares of a network's activations over texts reach the right
 * part; and that origin.json, which names what a pruning removed, is checked before it is used. */
#include "lib/checkpoint/provenance.h"
#include "lib/decode/activity.h"
#include "tests/files.h"
#include "tests/model/planted.h"

static char source[64];

/* ---- calibration ---- */

/* Changes the last layer, where no layer follows: unit 5 is twice as large, unit 6 and key head 1
 * are silent. */
static void plant_loud(const struct config *c, enum role r, size_t layer, float *v)
{
    if (layer != 1)
        return;
    for (size_t k = 0; k < c->width && r == ROLE_UP; k++) {
        v[5 * c->width + k] *= 2;
        v[6 * c->width + k] = 0;
    }
    for (size_t i = 0; i < c->head_dim * c->width && r == ROLE_V; i++)
        v[c->head_dim * c->width + i] = 0;
}

static int calibrate(const char *device, const char *texts, struct activity *out, struct err *e)
{
    struct checkpoint c;
    struct network n;
    char *path = mem_format("%s/texts", files_root);
    FILE *f = fopen(path, "w");
    fputs(texts, f);
    fclose(f);
    const char *const paths[] = {path};
    struct backend *b = backend_open(device, NULL, 2, 0, NULL);
    struct rec_reader *in = rec_read_open(paths, 1, e);
    int bad = checkpoint_open(&c, source, 0, e) ||
              network_load(&n, b, &c, &(struct precision){0}, e) ||
              activity_run(out, &n, NULL, in, 0, 3, e);
    rec_read_close(in);
    network_free(&n);
    backend_close(b);
    checkpoint_close(&c);
    free(path);
    return bad ? -1 : 0;
}

static void test_activity(const char *shape, const char *device, int64_t rows)
{
    static const char texts[] = "{\"id\":\"a\",\"prompt_ids\":[1,2,3,4,5,6,7]}\n"
                                "{\"kind\":\"note\"}\n"
                                "{\"id\":\"b\",\"prompt_ids\":[9,8,7,11,300]}\n";
    enum { F = 160, H = 4 };
    struct activity a = {0}, b = {0};
    struct err e = {0};
    planted_save((struct planted){.shape = shape, .kv_heads = 2}, source);
    int bad = calibrate(device, texts, &a, &e);
    planted_save((struct planted){.shape = shape, .kv_heads = 2, .plant = plant_loud}, source);
    bad = bad || calibrate(device, texts, &b, &e);
    if (!ok(!bad && a.texts == 2 && a.rows == rows, "%s on %s: %lld rows %s", shape, device,
            (long long)a.rows, e.text))
        return;
    const double *u = a.mean.unit, *v = b.mean.unit, *h = b.mean.head + H;
    ok(!memcmp(u, v, F * sizeof *u) && u[0] > 0, "%s: the layer before is what it was", shape);
    ok(h[0] > 0 && h[1] > 0 && !(h[2] > 0) && !(h[3] > 0), "%s: heads without values", shape);
    /* the silent key head 1 changes what attention adds to the stream */
    ok(v[F + 5] > 0 && !(v[F + 6] > 0) && v[F + 7] > 0, "%s: a unit that is silent", shape);
    activity_free(&a);
    activity_free(&b);
}

static void plant_unit(const struct config *c, enum role r, size_t layer, float *v)
{
    for (size_t k = 0; k < c->width && r == ROLE_UP && layer == 1; k++)
        v[5 * c->width + k] *= 2;
}

static void test_mean_squares(void)
{
    static const char texts[] = "{\"id\":\"a\",\"prompt_ids\":[1,2,3,4,5,6,7]}\n";
    enum { F = 160 };
    struct activity a = {0}, b = {0};
    struct err e = {0};
    planted_save((struct planted){.shape = "tiny-llama"}, source);
    int bad = calibrate("cpu", texts, &a, &e);
    planted_save((struct planted){.shape = "tiny-llama", .plant = plant_unit}, source);
    bad = bad || calibrate("cpu", texts, &b, &e);
    double d = bad ? NAN : b.mean.unit[F + 5] - 4 * a.mean.unit[F + 5];
    ok(!bad && !(d < 0) && !(d > 0), "twice a unit is four times its mean square %s", e.text);
    b.mean.unit[F + 5] /= 4;
    ok(!bad && !memcmp(a.mean.unit, b.mean.unit, 2 * F * sizeof(double)),
       "a unit twice as large does not change the mean squares of others");
    activity_free(&a);
    activity_free(&b);
}

static void test_bad_texts(void)
{
    struct activity c = {0};
    struct err e = {0};
    planted_save((struct planted){.shape = "tiny-llada"}, source);
    ok(calibrate("cpu", "{\"id\":\"a\",\"prompt_ids\":[1,512]}\n", &c, &e) == -1 &&
           e.code == EXIT_BAD_DATA && strstr(e.text, "texts:1"), "%s", e.text);
    e = (struct err){0};
    ok(calibrate("cpu", "{\"kind\":\"note\"}\n", &c, &e) == -1 && e.code == EXIT_BAD_DATA &&
           strstr(e.text, "expected texts"), "%s", e.text);
}

/* ---- origin.json ---- */

static void test_origin(void)
{
    struct prune p = {0}, q;
    struct config c;
    struct err e = {0};
    synth_config(&c, "tiny-llama", &e);
    struct prune_values score = prune_values_make(&c);
    for (size_t i = 0; i < c.layers * c.ffn; i++)
        score.unit[i] = (double)(i * 7 % 31);
    for (size_t i = 0; i < c.layers * c.heads; i++)
        score.head[i] = (double)(i * 5 % 7);
    prune_settle(&p, &c, 0.5, 0.3, &e);
    prune_choose(&p, &c, &score);
    json_t *about = json_pack("{s:s, s:[]}", "model", "m", "files");
    json_t *origin = provenance_make(about, "none");
    ok(!provenance_pruning(origin, &c, &q, &e),
       "a checkpoint that was not pruned records no pruning");
    provenance_prune(origin, &c, &p, "l2", 0.5, 0.3, NULL);
    ok(provenance_pruning(origin, &c, &q, &e) == 1 && q.config.heads == p.config.heads &&
           q.config.ffn == p.config.ffn &&
           !memcmp(p.query, q.query, c.layers * p.config.heads * sizeof *p.query) &&
           !memcmp(p.key, q.key, c.layers * p.config.kv_heads * sizeof *p.key) &&
           !memcmp(p.unit, q.unit, c.layers * p.config.ffn * sizeof *p.unit),
       "a recorded pruning is read as it was written %s", e.text);
    prune_free(&p);
    prune_free(&q);
    prune_values_free(&score);
    json_decref(origin);
    json_decref(about);
}

/* Tests one origin.json for a model with two layers, 4 heads in 2 groups and 160 units. */
static void hostile(const char *removed, const char *says)
{
    struct prune p;
    struct config c;
    struct err e = {0};
    synth_config(&c, "tiny-llama", &e);
    json_t *origin = json_pack("{s:{s:o}}", "pruning", "removed",
                               json_loads(removed, JSON_DECODE_ANY, NULL));
    ok(origin && provenance_pruning(origin, &c, &p, &e) == -1 && e.code == EXIT_BAD_DATA &&
           strstr(e.text, says), "%s: %s", removed, e.text);
    json_decref(origin);
}

#define NONE "{\"query\":[],\"key\":[],\"unit\":[]}"
static void test_hostile(void)
{
    hostile("{}", "list of 2 layers");
    hostile("[]", "list of 2 layers");
    hostile("[" NONE "," NONE "," NONE "]", "list of 2 layers");
    hostile("[" NONE ",{}]", "query: expected a list");
    hostile("[" NONE ",{\"query\":[],\"key\":[],\"unit\":[3]}]", "as long in all layers");
    hostile("[{\"query\":[0,1,2,3],\"key\":[],\"unit\":[]}," NONE "]", "leaves some");
    hostile("[{\"query\":[],\"key\":[],\"unit\":[2,1]}," NONE "]", "ascend");
    hostile("[{\"query\":[],\"key\":[],\"unit\":[1,1]}," NONE "]", "ascend");
    hostile("[{\"query\":[],\"key\":[],\"unit\":[160]}," NONE "]", "ascend");
    hostile("[{\"query\":[],\"key\":[],\"unit\":[-1]}," NONE "]", "ascend");
    hostile("[{\"query\":[],\"key\":[],\"unit\":[\"1\"]}," NONE "]", "ascend");
    hostile("[{\"query\":[],\"key\":[],\"unit\":[1e9]}," NONE "]", "ascend");
    hostile("[{\"query\":[0],\"key\":[],\"unit\":[]},{\"query\":[0],\"key\":[],\"unit\":[]}]",
            "of every group");
    hostile("[{\"query\":[0,1],\"key\":[],\"unit\":[]},{\"query\":[0,1],\"key\":[],\"unit\":[]}]",
            "of every group");
    hostile("[{\"query\":[0,1],\"key\":[1],\"unit\":[]},{\"query\":[0,1],\"key\":[1],\"unit\":[]}]",
            "of every group");
}

int main(void)
{
    files_begin();
    snprintf(source, sizeof source, "%s/source", files_root);
    test_activity("tiny-llama", "cpu", 12);
    test_activity("tiny-llada", "cpu", 12 * ACTIVITY_MASKS);
    test_activity("tiny-llama", "ref", 12);
    test_mean_squares();
    test_bad_texts();
    test_origin();
    test_hostile();
    files_end();
    return tap_done();
}
