/* ref_wkv.c - time mixing token by token, and its gradients by the chain rule applied to the
 * same lines, all in double (kernels/wkv.h). The gradients read every state, so every state is
 * stored. */
#include "kernels/ref/ref.h"

#include <math.h>
#include <string.h>

/* The place of token t of a head in arrays of rows, and the head's u. */
struct token {
    const struct wkv_rows *in;
    size_t at, head;
};

static struct token token_at(const struct wkv_rows *in, size_t row, size_t h)
{
    return (struct token){in, (row * in->heads + h) * in->head_dim, h * in->head_dim};
}

static double bonus(const struct token *p, size_t i)
{
    return p->in->u ? (double)p->in->u[p->head + i] * p->in->k[p->at + i] : 0;
}

/* x[E] = a^T S, zeros for RWKV 6. */
static void removed(const struct token *p, const double *S, double *x)
{
    size_t E = p->in->head_dim;
    memset(x, 0, E * sizeof *x);
    for (size_t i = 0; p->in->a && i < E; i++)
        for (size_t j = 0; j < E; j++)
            x[j] += p->in->a[p->at + i] * S[i * E + j];
}

/* next[E, E] = the state behind the token; next may be S. */
static void state_step(const struct token *p, const double *S, const double *x, double *next)
{
    const struct wkv_rows *in = p->in;
    size_t E = in->head_dim, at = p->at;
    for (size_t i = 0; i < E; i++)
        for (size_t j = 0; j < E; j++)
            next[i * E + j] = exp((double)in->w[at + i]) * S[i * E + j] +
                              (double)in->k[at + i] * in->v[at + j] +
                              (in->b ? in->b[at + i] * x[j] : 0);
}

/* y[E] of the token. RWKV 6 reads the state before it, RWKV 7 the state behind it. */
static void output(const struct token *p, const double *before, const double *behind, float *y)
{
    const struct wkv_rows *in = p->in;
    size_t E = in->head_dim, at = p->at;
    const double *S = in->a ? behind : before;
    for (size_t j = 0; j < E; j++) {
        double sum = 0;
        for (size_t i = 0; i < E; i++)
            sum += in->r[at + i] * (S[i * E + j] + bonus(p, i) * in->v[at + j]);
        y[j] = (float)sum;
    }
}

static size_t first_row(const struct wkv_rows *in, size_t seq)
{
    return (size_t)in->seqs[seq].row_begin;
}

static void widen(double *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from ? from[i] : 0;
}

static void narrow(float *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i];
}

/* Two states and x. */
size_t ref_wkv_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                    size_t head_dim)
{
    (void)b, (void)n_seqs, (void)max_rows, (void)heads;
    return (2 * head_dim + 1) * head_dim * sizeof(double);
}

void ref_wkv(struct backend *b, const struct wkv *a, void *work)
{
    (void)b;
    const struct wkv_rows *in = &a->in;
    size_t E = in->head_dim;
    double *before = work, *behind = before + E * E, *x = behind + E * E;
    for (size_t s = 0; s < in->n_seqs; s++)
        for (size_t h = 0; h < in->heads; h++) {
            size_t own = a->at ? (size_t)a->at[s] : s;
            float *state = a->state + (own * in->heads + h) * E * E;
            widen(behind, state, E * E);
            for (size_t t = 0; t < (size_t)in->seqs[s].rows; t++) {
                struct token p = token_at(in, first_row(in, s) + t, h);
                memcpy(before, behind, E * E * sizeof *before);
                removed(&p, before, x);
                state_step(&p, before, x, behind);
                output(&p, before, behind, a->y + p.at);
            }
            narrow(state, behind, E * E);
        }
}

/* ---- gradients ---- */

/* Sums of one head. g[E, E]: gradient of the state behind a token, then of the state before it. x,
 * q, dv: [E]. du: [E], summed over the tokens. */
struct sums {
    double *g, *x, *q, *dv, *du;
};

static void back6(const struct wkv_back *a, const struct token *p, const double *S,
                  const struct sums *sum)
{
    const struct wkv_rows *in = &a->in;
    size_t E = in->head_dim, at = p->at;
    const float *v = in->v + at, *d = a->dy + at;
    for (size_t i = 0; i < E; i++) {
        double r = in->r[at + i], k = in->k[at + i], u = in->u[p->head + i];
        double decay = exp((double)in->w[at + i]), dr = 0, dk = 0, dw = 0;
        for (size_t j = 0; j < E; j++) {
            double s = S[i * E + j], *g = &sum->g[i * E + j], of_kv = *g + u * r * d[j];
            dr += d[j] * (s + u * k * v[j]);
            dk += of_kv * v[j];
            dw += decay * *g * s;
            sum->dv[j] += of_kv * k;
            sum->du[i] += r * d[j] * k * v[j];
            *g = decay * *g + r * d[j];
        }
        a->dr[at + i] = (float)dr;
        a->dk[at + i] = (float)dk;
        a->dw[at + i] = (float)dw;
    }
}

static void back7(const struct wkv_back *a, const struct token *p, const double *S,
                  const double *next, const struct sums *sum)
{
    const struct wkv_rows *in = &a->in;
    size_t E = in->head_dim, at = p->at;
    const float *v = in->v + at, *d = a->dy + at;
    removed(p, S, sum->x);
    memset(sum->q, 0, E * sizeof *sum->q);
    for (size_t i = 0; i < E; i++)
        for (size_t j = 0; j < E; j++) {
            sum->g[i * E + j] += (double)in->r[at + i] * d[j];
            sum->q[j] += sum->g[i * E + j] * in->b[at + i];
        }
    for (size_t i = 0; i < E; i++) {
        double decay = exp((double)in->w[at + i]), dr = 0, dk = 0, dw = 0, da = 0, db = 0;
        for (size_t j = 0; j < E; j++) {
            double s = S[i * E + j], *g = &sum->g[i * E + j];
            dr += next[i * E + j] * d[j];
            dk += *g * v[j];
            db += *g * sum->x[j];
            da += s * sum->q[j];
            dw += decay * *g * s;
            sum->dv[j] += *g * in->k[at + i];
            *g = decay * *g + in->a[at + i] * sum->q[j];
        }
        a->dr[at + i] = (float)dr;
        a->dk[at + i] = (float)dk;
        a->dw[at + i] = (float)dw;
        a->da[at + i] = (float)da;
        a->db[at + i] = (float)db;
    }
}

/* states[rows + 1, E, E]: before each row, and behind the last. */
static void all_states(const struct wkv_rows *in, size_t s, size_t h, double *states, double *x)
{
    size_t E = in->head_dim;
    for (size_t t = 0; t < (size_t)in->seqs[s].rows; t++, states += E * E) {
        struct token p = token_at(in, first_row(in, s) + t, h);
        removed(&p, states, x);
        state_step(&p, states, x, states + E * E);
    }
}

/* Work: the states of a sequence; g; x, q, dv and du. */
size_t ref_wkv_back_work(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                         size_t head_dim)
{
    (void)b, (void)n_seqs, (void)heads;
    return ((max_rows + 2) * head_dim + 4) * head_dim * sizeof(double);
}

static void head_back(const struct wkv_back *a, size_t s, size_t h, double *work)
{
    const struct wkv_rows *in = &a->in;
    size_t E = in->head_dim, at = (s * in->heads + h) * E * E;
    struct sums sum = {work, work + E * E, work + E * E + E, work + E * E + 2 * E,
                       work + E * E + 3 * E};
    double *states = work + E * E + 4 * E;
    widen(states, a->state ? a->state + at : NULL, E * E);
    widen(sum.g, a->dstate ? a->dstate + at : NULL, E * E);
    memset(sum.du, 0, E * sizeof *sum.du);
    all_states(in, s, h, states, sum.x);
    for (size_t t = (size_t)in->seqs[s].rows; t-- > 0;) {
        struct token p = token_at(in, first_row(in, s) + t, h);
        const double *S = states + t * E * E;
        memset(sum.dv, 0, E * sizeof *sum.dv);
        if (in->a)
            back7(a, &p, S, S + E * E, &sum);
        else
            back6(a, &p, S, &sum);
        narrow(a->dv + p.at, sum.dv, E);
    }
    if (a->dstate)
        narrow(a->dstate + at, sum.g, E * E);
    for (size_t i = 0; a->du && !in->a && i < E; i++)
        a->du[h * E + i] = (float)(a->du[h * E + i] + sum.du[i]);
}

void ref_wkv_back(struct backend *b, const struct wkv_back *a, void *work)
{
    (void)b;
    for (size_t s = 0; s < a->in.n_seqs; s++)
        for (size_t h = 0; h < a->in.heads; h++)
            head_back(a, s, h, work);
}
