/* ref_wkv-back.c - gradients of time mixing (struct wkv_back) in double, by the chain rule applied
 * to the lines of ref_wkv.h. They read every state, so every state is stored. */
#include "kernels/ref/ref_wkv.h"

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
