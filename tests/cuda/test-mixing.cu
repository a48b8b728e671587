/* test-mixing.cu - compares the operations around time mixing on the device with the reference:
 * sequences of unequal length, also empty ones, states by index, heads that are no whole warps, in
 * place and not. */
#include "kernels/mixing.h"
#include "tests/cuda/rows-fixture.h"

enum { SEQS = 3, ARRAYS = 6 };
struct shape {
    size_t H, E;
    int32_t rows[SEQS];
};
static const struct shape shapes[] = {{2, 64, {7, 1, 13}}, {3, 6, {1, 0, 2}}, {9, 34, {5, 3, 4}}};
static const int32_t at[SEQS] = {4, 0, 2};

/* All inputs and outputs of a case, as one block on the host and one on the device. */
struct data {
    size_t T, D, wide, all;
    float *host, *device;
    struct attn_seq seqs[SEQS], *seqs_there;
    int32_t *at_there;
};

static struct data make(struct fixture *f, const struct shape *s)
{
    struct data d = {};
    for (int i = 0; i < SEQS; i++) {
        d.seqs[i] = {(int32_t)d.T, s->rows[i], 0, 0};
        d.T += (size_t)s->rows[i];
    }
    d.D = s->H * s->E;
    d.wide = (d.T + SEQS + 2) * d.D;
    d.all = (2 * MIXING_LANES + ARRAYS + 2) * d.wide;
    d.host = drawn(f, d.all);
    d.device = (float *)sent(f, d.host, d.all * sizeof(float));
    d.seqs_there = (struct attn_seq *)sent(f, d.seqs, sizeof d.seqs);
    d.at_there = (int32_t *)sent(f, at, sizeof at);
    return d;
}

static float *array(const struct data *d, bool there, size_t i)
{
    return (there ? d->device : d->host) + i * d->wide;
}

static double apart(struct fixture *f, struct data *d)
{
    double far = 0, most = 1;
    float *got = floats(d->all);
    cuda_read(f->cuda, got, d->device, d->all * sizeof *got);
    for (size_t i = 0; i < d->all; i++) {
        double off = fabs((double)got[i] - d->host[i]);
        far = isnan(off) ? INFINITY : fmax(far, off);
        most = fmax(most, fabs((double)d->host[i]));
    }
    free(got);
    cuda_free(f->cuda, d->device);
    cuda_free(f->cuda, d->seqs_there);
    cuda_free(f->cuda, d->at_there);
    free(d->host);
    return far / most;
}

/* Array 0 is x, arrays 1 .. are the values beside it, ARRAYS .. the vectors, then `more` and
 * `to`. */
static struct shift shift_of(const struct data *d, bool there, int dynamic, bool states)
{
    struct shift s = {};
    s.x = array(d, there, 0);
    s.n = dynamic ? 5 : 6;
    for (size_t i = 0; i < s.n; i++) {
        float *more = array(d, there, ARRAYS + 2 + i);
        s.share[i] = array(d, there, ARRAYS) + i;
        s.more[i] = dynamic ? more : NULL;
        s.to[i] = dynamic == 2 ? more : array(d, there, ARRAYS + 2 + MIXING_LANES + i);
    }
    s.last = states ? array(d, there, 1) : NULL;
    s.at = there ? d->at_there : at;
    s.keep = 1;
    s.seqs = there ? d->seqs_there : d->seqs;
    s.n_seqs = SEQS;
    s.T = d->T;
    s.D = d->D;
    return s;
}

static void shifts(struct fixture *f, const struct shape *s)
{
    for (int way = 0; way < 6; way++) {
        struct data d = make(f, s);
        struct shift here = shift_of(&d, false, way % 3, way > 2);
        struct shift there = shift_of(&d, true, way % 3, way > 2);
        ops_ref.mixing->shift(f->ref, &here);
        cuda_shift(f->cuda, &there);
        double far = apart(f, &d);
        ok(far < 2e-6, "shift, way %d, %zu x %zu (%.1e)", way, s->H, s->E, far);
    }
}

static void bends(struct fixture *f, const struct shape *s)
{
    for (int way = 0; way < 8; way++) {
        struct data d = make(f, s);
        struct squash here = {array(&d, false, 0), way % 2 ? array(&d, false, ARRAYS) : NULL, d.T,
                              d.D, (enum squash_by)(way / 2)};
        struct squash there = here;
        there.x = array(&d, true, 0);
        there.base = here.base ? array(&d, true, ARRAYS) : NULL;
        ops_ref.mixing->squash(f->ref, &here);
        cuda_squash(f->cuda, &there);
        double far = apart(f, &d);
        ok(far < 2e-6, "squash %d%s, %zu values (%.1e)", way / 2, way % 2 ? " with a base" : "",
           d.T * d.D, far);
    }
}

static struct removal removal_of(const struct data *d, const struct shape *s, bool there, bool own,
                                 bool first)
{
    struct removal a = {};
    float *x[ARRAYS + 6];
    for (size_t i = 0; i < ARRAYS + 6; i++)
        x[i] = array(d, there, i);
    a.k = x[0];
    a.v = x[1];
    a.rate = x[2];
    a.first = first ? x[3] : NULL;
    a.share = x[4];
    a.scale = x[ARRAYS];
    a.key_rate = x[ARRAYS + 1];
    a.to_k = own ? x[0] : x[ARRAYS + 2];
    a.to_v = own ? x[1] : x[ARRAYS + 3];
    a.a = x[ARRAYS + 4];
    a.b = own ? x[2] : x[ARRAYS + 5];
    a.T = d->T;
    a.heads = s->H;
    a.head_dim = s->E;
    return a;
}

static struct heads_out heads_of(const struct data *d, const struct shape *s, bool there, bool own,
                                 bool bonus)
{
    struct heads_out a = {};
    a.o = array(d, there, 0);
    a.gate = array(d, there, 1);
    a.r = array(d, there, 2);
    a.k = array(d, there, 3);
    a.v = array(d, there, 4);
    a.gain = array(d, there, ARRAYS);
    a.bias = array(d, there, ARRAYS + 1);
    a.weight = bonus ? array(d, there, 5) : NULL;
    a.y = array(d, there, own ? 0 : ARRAYS + 2);
    a.T = d->T;
    a.heads = s->H;
    a.head_dim = s->E;
    return a;
}

static void heads(struct fixture *f, const struct shape *s)
{
    for (int way = 0; way < 4; way++) {
        struct data d = make(f, s);
        struct removal here = removal_of(&d, s, false, way % 2, way / 2);
        struct removal there = removal_of(&d, s, true, way % 2, way / 2);
        ops_ref.mixing->removal(f->ref, &here);
        cuda_removal(f->cuda, &there);
        double far = apart(f, &d);
        ok(far < 2e-6, "removal, way %d, %zu x %zu (%.1e)", way, s->H, s->E, far);
        d = make(f, s);
        struct heads_out h = heads_of(&d, s, false, way % 2, way / 2);
        struct heads_out t = heads_of(&d, s, true, way % 2, way / 2);
        ops_ref.mixing->heads_out(f->ref, &h);
        cuda_heads_out(f->cuda, &t);
        far = apart(f, &d);
        ok(far < 2e-6, "heads, way %d, %zu x %zu (%.1e)", way, s->H, s->E, far);
    }
}

int main(void)
{
    struct fixture f = fixture_open();
    f.cuda->act = DTYPE_F32;
    for (const struct shape &s : shapes) {
        shifts(&f, &s);
        bends(&f, &s);
        heads(&f, &s);
    }
    fixture_close(&f);
    return tap_done();
}
