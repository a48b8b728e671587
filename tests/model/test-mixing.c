/* test-mixing.c - compares RWKV 6 and 7 as mixers of a network with the papers' definitions
 * (naive-mixing.h): the network (all rows at once, and one by one, in both forms) and the forward
 * pass of training, on cpu and ref, with weights that were saved and loaded. */
#include <math.h>

#include "kernels/wkv.h"
#include "lib/network/forward.h"
#include "lib/network/latent.h"
#include "lib/train/backprop.h"
#include "tests/model/naive-mixing.h"

static char folder[] = "/tmp/crossover-test-mixing-XXXXXX";

/* ---- the network ---- */

/* Fills out[i] = log p(ids[i + 1] | ids[0..i]) by passes of `part` rows. */
static void by_network(const struct network *n, const int32_t *ids, size_t part,
                       enum wkv_form form, double *out)
{
    const struct work_size size = {.rows = part, .seqs = 1, .slots = 1, .listed = 1,
                                   .wanted = part, .cached = 1, .latent = 1,
                                   .how = {.wkv = form}};
    float *z = mem_zero(latent_values(&n->config), sizeof *z);
    struct kv kv;
    struct latents latents;
    struct work *w = work_make(n, &size);
    int32_t pos[LEN], rows[LEN], slot[LEN] = {0};
    struct head_row answer[LEN];
    if (!w || kv_make(&kv, n, 1) || latent_make(&latents, n, 1))
        exit(1);
    latent_set(&latents, n, 0, z, n->config.latents * n->config.width);
    kv.latents = &latents;
    for (size_t t = 0; t < LEN; t++)
        pos[t] = rows[t] = (int32_t)t;
    for (size_t t = 0; t + 1 < LEN; t += part) {
        size_t some = t + part < LEN ? part : LEN - 1 - t;
        const struct forward_seq seq = {some, slot, 1, 0};
        const struct forward f = {.token = ids + t, .pos = pos + t, .slot = slot, .seqs = &seq,
                                  .n_seqs = 1, .mask = MASK_CAUSAL, .wanted = rows,
                                  .n_wanted = some, .query = {.target = ids + t + 1}};
        forward(n, &kv, w, &f, answer, NULL);
        for (size_t i = 0; i < some; i++)
            out[t + i] = answer[i].target_log_prob;
    }
    latent_free(&latents, n);
    kv_free(&kv, n);
    work_free(w, n);
    free(z);
}

static double by_training(const struct network *n, const int32_t *ids)
{
    struct parameters *p = parameters_read(n);
    struct backprop *t = backprop_make(p, LEN, 1, DTYPE_F32);
    float *z = mem_zero(latent_values(&n->config), sizeof *z), weight[LEN];
    for (size_t i = 0; i < LEN; i++)
        weight[i] = 1;
    const struct train_batch b = {.seqs = 1, .len = LEN - 1, .token = (int32_t *)(uintptr_t)ids,
                                  .target = (int32_t *)(uintptr_t)(ids + 1), .weight = weight,
                                  .z = z};
    double nats = backprop_loss(t, &b, BACKPROP_LOSS);
    backprop_free(t);
    parameters_free(p);
    free(z);
    return nats;
}

static double apart(const double *x, const double *y)
{
    double far = 0;
    for (size_t t = 0; t + 1 < LEN; t++)
        far = fmax(far, fabs(x[t] - y[t]));
    return far;
}

static void compare(const struct checkpoint *c, const char *device, const int32_t *ids,
                    const double *truth)
{
    struct backend *b = backend_open(device, NULL, 2, 0, NULL);
    const struct precision p = {.dtype = "f32"};
    const char *name = config_mixer_name(c->config.mixer);
    struct err e = {0};
    struct network n;
    double whole[LEN], single[LEN], parts[LEN], forms[2][LEN], sum = 0;
    if (network_load(&n, b, c, &p, &e)) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
    by_network(&n, ids, LEN - 1, WKV_AUTO, whole);
    by_network(&n, ids, 1, WKV_AUTO, single);
    by_network(&n, ids, 17, WKV_AUTO, parts);
    by_network(&n, ids, LEN - 1, WKV_RECURRENT, forms[0]);
    by_network(&n, ids, LEN - 1, WKV_CHUNKED, forms[1]);
    ok(apart(whole, truth) < 1e-4, "%s on %s: %.1e nats from the definition of its paper", name,
       device, apart(whole, truth));
    ok(apart(whole, single) < 1e-5 && apart(whole, parts) < 1e-5,
       "%s on %s: rows at once, in parts and one by one: %.1e and %.1e nats apart", name, device,
       apart(whole, parts), apart(whole, single));
    ok(apart(forms[0], truth) < 1e-4 && apart(forms[1], truth) < 1e-4 &&
           (!strcmp(device, "ref") || apart(forms[0], forms[1]) > 0),
       "%s on %s: recurrent %.1e and chunked %.1e nats from the definition", name, device,
       apart(forms[0], truth), apart(forms[1], truth));
    for (size_t t = 0; t + 1 < LEN; t++)
        sum -= truth[t];
    double trained = by_training(&n, ids);
    ok(fabs(trained - sum) < 1e-5 * sum, "%s: %.5f nats by training, %.5f by definition", name,
       trained, sum);
    network_free(&n);
    backend_close(b);
}

static void mixer(const char *shape)
{
    struct checkpoint c;
    int32_t ids[LEN];
    double truth[LEN];
    open_mixer(&c, shape, folder, ids);
    struct naive *m = read_naive(&c);
    by_definition(m, c.config.ffn, ids, LEN, truth);
    compare(&c, "cpu", ids, truth);
    compare(&c, "ref", ids, truth);
    free_naive(m);
    checkpoint_close(&c);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        printf("Bail out! no folder in /tmp\n");
        return 1;
    }
    mixer("tiny-ltm-rwkv6");
    mixer("tiny-ltm-rwkv7");
    planted_forget(folder);
    return tap_done();
}
