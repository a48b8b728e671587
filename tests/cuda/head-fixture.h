/* head-fixture.h - asks the head questions, on the device and on ref. A row of x picks one column
 * of the matrix, so logits are exact and every choice must be the same id. */
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/cuda/head/head.h"
#include "kernels/gumbel.h"
#include "tests/cuda/rows-fixture.h"

typedef std::vector<float> values;
typedef std::vector<int32_t> ids;
typedef std::vector<struct head_row> answers;

enum { COLUMNS = 8 };

struct question {
    size_t R, V, D;
    values w;     /* [V, D] logits; row r has those of column r % (D/2), by a power of two */
    values x, xu; /* [R, D]; xu empty: no guidance. Its rows pick from the other half of w */
    double temperature, scale;
    size_t divergence, gumbel, dense, top_k, top_p_of_all, drawn;
    double top_p;
    std::vector<uint64_t> keys;
    ids ban, quiet, target;
    ids of_rows; /* head_query.ids; empty: NULL */
};

static struct question ask(size_t R, size_t V, double spread)
{
    struct question a = {};
    struct rng rng = {R + V, 0, 0};
    a.R = R;
    a.V = V;
    a.D = 2 * std::min(R, (size_t)COLUMNS);
    a.w.resize(V * a.D);
    for (float &l : a.w)
        l = (float)(spread * rng_normal(&rng));
    a.x.resize(R * a.D);
    for (size_t r = 0; r < R; r++) {
        a.x[r * a.D + r % (a.D / 2)] = ldexpf(1, (int)(r / COLUMNS % 5) - 1);
        a.keys.push_back(77 + r * 0x100000001u);
    }
    return a;
}

static void aim(struct question *a)
{
    for (size_t r = 0; r < a->R; r++)
        a->target.push_back((int32_t)(r * 7919 % a->V));
}

static void guide(struct question *a, double scale)
{
    a->scale = scale;
    a->xu.resize(a->x.size());
    for (size_t r = 0; r < a->R; r++)
        for (size_t j = 0; j < a->D / 2; j++)
            a->xu[r * a->D + a->D / 2 + j] = a->x[r * a->D + j];
}

/* ---- both answers ---- */

static struct head_query query(const struct question &a)
{
    struct head_query q = {};
    q.temperature = a.temperature;
    q.seed = 3;
    q.cfg_scale = a.scale;
    q.divergence = a.divergence;
    q.gumbel = a.gumbel;
    q.dense = a.dense;
    q.top_k = a.top_k;
    q.top_p = a.top_p;
    q.top_p_of_all = a.top_p_of_all;
    q.drawn = a.drawn;
    q.keys = a.keys.data();
    q.ban = a.ban.data();
    q.n_ban = a.ban.size();
    q.quiet = a.quiet.data();
    q.n_quiet = a.quiet.size();
    q.target = a.target.empty() ? NULL : a.target.data();
    q.ids = a.of_rows.empty() ? NULL : a.of_rows.data();
    return q;
}

typedef std::vector<struct head_top> bests;

/* The answers of ref. tops NULL: not asked for. */
static answers by_ref(struct fixture *f, const struct question &a, values *logits,
                      bests *tops = NULL)
{
    struct mat m;
    struct mat_source s = mat_floats(a.w.data(), a.V, a.D);
    struct head_query q = query(a);
    answers out(a.R);
    values work(2 * a.V);
    logits->resize(a.R * a.V);
    if (tops) {
        tops->resize(a.R);
        q.tops = tops->data();
    }
    ops_ref.mat_make(f->ref, &m, &s, DTYPE_F32);
    ops_ref.head(f->ref, &m, a.x.data(), a.xu.empty() ? NULL : a.xu.data(), a.R, &q, out.data(),
                 logits->data(), work.data());
    ops_ref.mat_free(f->ref, &m);
    return out;
}

/* The arrays on the device while a question is asked. */
struct desk {
    struct fixture *f;
    std::vector<void *> there;
};

template <class E> static E *put(struct desk *d, const std::vector<E> &v)
{
    if (v.empty())
        return NULL;
    d->there.push_back(sent(d->f, v.data(), v.size() * sizeof(E)));
    return (E *)d->there.back();
}

template <class E> static E *room(struct desk *d, size_t n)
{
    d->there.push_back(cuda_alloc(d->f->cuda, n * sizeof(E), MEMORY_ACTIVATIONS));
    return (E *)d->there.back();
}

/* The answers of the device. plan NULL: the plan that fits; logits, tops NULL: not asked for. */
static answers by_cuda(struct fixture *f, const struct question &a, const struct head_plan *plan,
                       values *logits, bests *tops = NULL)
{
    struct backend *b = f->cuda;
    struct desk d = {f, {}};
    struct mat m;
    struct mat_source s = mat_floats(a.w.data(), a.V, a.D);
    struct head_query q = query(a);
    answers out(a.R);
    b->act = DTYPE_F32;
    cuda_mat_make(b, &m, &s, DTYPE_F32);
    q.keys = put(&d, a.keys);
    q.ban = put(&d, a.ban);
    q.quiet = put(&d, a.quiet);
    q.target = put(&d, a.target);
    q.ids = put(&d, a.of_rows);
    const float *x = put(&d, a.x), *xu = put(&d, a.xu);
    struct head_row *rows = room<struct head_row>(&d, a.R);
    float *kept = logits ? room<float>(&d, a.R * a.V) : NULL;
    q.tops = tops ? room<struct head_top>(&d, a.R) : NULL;
    void *work = room<char>(&d, plan ? cuda_head_by_work(b, plan, a.R, a.D, a.V, xu != NULL)
                                     : cuda_head_work(b, a.R, a.D, a.V,
                                                      a.dense * (1 + (xu != NULL))));
    if (plan)
        cuda_head_by(b, plan, &m, x, xu, a.R, &q, rows, kept, work);
    else
        cuda_head(b, &m, x, xu, a.R, &q, rows, kept, work);
    cuda_read(b, out.data(), rows, a.R * sizeof out[0]);
    if (logits) {
        logits->resize(a.R * a.V);
        cuda_read(b, logits->data(), kept, a.R * a.V * sizeof(float));
    }
    if (tops) {
        tops->resize(a.R);
        cuda_read(b, tops->data(), q.tops, a.R * sizeof(struct head_top));
    }
    for (void *p : d.there)
        cuda_free(b, p);
    cuda_mat_free(b, &m);
    return out;
}

/* ---- how far apart they are ---- */

/* Returns true for a row with a NaN or +Inf: only the id of such an answer has a meaning. */
static bool senseless(const struct question &a, size_t r)
{
    for (size_t v = 0; v < a.V; v++) {
        float c = 0, u = 0;
        for (size_t j = 0; j < a.D; j++) {
            c += a.x[r * a.D + j] * a.w[v * a.D + j];
            u += a.xu.empty() ? 0 : a.xu[r * a.D + j] * a.w[v * a.D + j];
        }
        if (!(c < INFINITY) || !isfinite(u))
            return true;
    }
    return false;
}

static bool same_number(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

static double apart(double x, double y)
{
    return same_number(x, y) ? 0 : isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
}

static double numbers_apart(const struct head_row &x, const struct head_row &y)
{
    double d = apart(x.log_prob, y.log_prob);
    d = fmax(d, apart((double)x.prob, (double)y.prob));
    d = fmax(d, apart(x.best_log_prob, y.best_log_prob));
    d = fmax(d, apart((double)x.entropy, (double)y.entropy));
    d = fmax(d, apart((double)x.runner_up_prob, (double)y.runner_up_prob));
    d = fmax(d, apart((double)x.divergence, (double)y.divergence) / (1 + (double)x.divergence));
    return fmax(d, apart(x.target_log_prob, y.target_log_prob));
}

static void agree(struct fixture *f, const struct question &a, const struct head_plan *plan,
                  const char *what)
{
    values want, have;
    bests best, found;
    answers x = by_ref(f, a, &want, &best), y = by_cuda(f, a, plan, &have, &found);
    int choices = 0, logits = 0;
    double far = 0;
    for (size_t r = 0; r < a.R; r++) {
        choices += x[r].id != y[r].id || x[r].bad != y[r].bad;
        if (senseless(a, r))
            continue;
        choices += x[r].runner_up != y[r].runner_up || !same_number(x[r].gap, y[r].gap);
        far = fmax(far, numbers_apart(x[r], y[r]));
        for (int i = 0; i < HEAD_TOPS && !x[r].bad; i++) {
            choices += best[r].id[i] != found[r].id[i];
            far = fmax(far, apart((double)best[r].prob[i], (double)found[r].prob[i]));
        }
    }
    for (size_t i = 0; i < want.size(); i++)
        logits += !same_number(want[i], have[i]);
    ok(choices == 0 && logits == 0 && far < 3e-6,
       "%zu rows, %zu ids, %s: %d choices and %d logits differ, numbers by %.1e", a.R, a.V, what,
       choices, logits, far);
}
