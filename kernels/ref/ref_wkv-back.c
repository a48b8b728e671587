/* ref_wkv-back.c - gradients of time mixing (struct wkv_back) in double, by the chain rule applied
 * to the lines of ref_wkv.h. They need the state before every token, so all states are stored. */
#include "kernels/ref/ref_wkv.h"

/* Sums of one head. g[E, E]: the gradient of the state behind a token; each token replaces it by
 * the gradient of the state before the token. x[E]: as in kernels/wkv.h; q[E]: the gradient of x;
 * dv[E]; du[E]: summed over all tokens. */
struct sums {
    double *g, *x, *q, *dv, *du;
};

static void back6(const struct wkv_back *back, const struct token *token, const double *state,
                  const struct sums *sum)
{
    const struct wkv_rows *in = &back->in;
    size_t E = in->head_dim, at = token->at;
    const float *value = in->v + at, *dy = back->dy + at;
    for (size_t i = 0; i < E; i++) {
        double receptance = in->r[at + i], k = in->k[at + i], bonus = in->u[token->head + i];
        double decay = exp((double)in->w[at + i]), dr = 0, dk = 0, dw = 0;
        for (size_t j = 0; j < E; j++) {
            double entry = state[i * E + j], *grad = &sum->g[i * E + j],
                   of_kv = *grad + bonus * receptance * dy[j];
            dr += dy[j] * (entry + bonus * k * value[j]);
            dk += of_kv * value[j];
            dw += decay * *grad * entry;
            sum->dv[j] += of_kv * k;
            sum->du[i] += receptance * dy[j] * k * value[j];
            *grad = decay * *grad + receptance * dy[j];
        }
        back->dr[at + i] = (float)dr;
        back->dk[at + i] = (float)dk;
        back->dw[at + i] = (float)dw;
    }
}

static void back7(const struct wkv_back *back, const struct token *token, const double *state,
                  const double *next, const struct sums *sum)
{
    const struct wkv_rows *in = &back->in;
    size_t E = in->head_dim, at = token->at;
    const float *value = in->v + at, *dy = back->dy + at;
    removed(token, state, sum->x);
    memset(sum->q, 0, E * sizeof *sum->q);
    for (size_t i = 0; i < E; i++)
        for (size_t j = 0; j < E; j++) {
            sum->g[i * E + j] += (double)in->r[at + i] * dy[j];
            sum->q[j] += sum->g[i * E + j] * in->b[at + i];
        }
    for (size_t i = 0; i < E; i++) {
        double decay = exp((double)in->w[at + i]), dr = 0, dk = 0, dw = 0, da = 0, db = 0;
        for (size_t j = 0; j < E; j++) {
            double entry = state[i * E + j], *grad = &sum->g[i * E + j];
            dr += next[i * E + j] * dy[j];
            dk += *grad * value[j];
            db += *grad * sum->x[j];
            da += entry * sum->q[j];
            dw += decay * *grad * entry;
            sum->dv[j] += *grad * in->k[at + i];
            *grad = decay * *grad + in->a[at + i] * sum->q[j];
        }
        back->dr[at + i] = (float)dr;
        back->dk[at + i] = (float)dk;
        back->dw[at + i] = (float)dw;
        back->da[at + i] = (float)da;
        back->db[at + i] = (float)db;
    }
}

/* Fills states[rows + 1, E, E] with the state before each row, and behind the last row. */
static void all_states(const struct wkv_rows *in, size_t sequence, size_t head, double *states,
                       double *x)
{
    size_t E = in->head_dim;
    for (size_t row = 0; row < (size_t)in->seqs[sequence].rows; row++, states += E * E) {
        struct token token = token_at(in, first_row(in, sequence) + row, head);
        removed(&token, states, x);
        state_step(&token, states, x, states + E * E);
    }
}

/* work holds the states of a sequence, g, x, q, dv and du. */
size_t ref_wkv_back_work(const struct backend *backend, size_t n_seqs, size_t max_rows,
                         size_t heads, size_t head_dim)
{
    (void)backend, (void)n_seqs, (void)heads;
    return ((max_rows + 2) * head_dim + 4) * head_dim * sizeof(double);
}

static void head_back(const struct wkv_back *back, size_t sequence, size_t head, double *work)
{
    const struct wkv_rows *in = &back->in;
    size_t E = in->head_dim, at = (sequence * in->heads + head) * E * E;
    struct sums sum = {work, work + E * E, work + E * E + E, work + E * E + 2 * E,
                       work + E * E + 3 * E};
    double *states = work + E * E + 4 * E;
    widen(states, back->state ? back->state + at : NULL, E * E);
    widen(sum.g, back->dstate ? back->dstate + at : NULL, E * E);
    memset(sum.du, 0, E * sizeof *sum.du);
    all_states(in, sequence, head, states, sum.x);
    for (size_t row = (size_t)in->seqs[sequence].rows; row-- > 0;) {
        struct token token = token_at(in, first_row(in, sequence) + row, head);
        const double *state = states + row * E * E;
        memset(sum.dv, 0, E * sizeof *sum.dv);
        if (in->a)
            back7(back, &token, state, state + E * E, &sum);
        else
            back6(back, &token, state, &sum);
        narrow(back->dv + token.at, sum.dv, E);
    }
    if (back->dstate)
        narrow(back->dstate + at, sum.g, E * E);
    for (size_t i = 0; back->du && !in->a && i < E; i++)
        back->du[head * E + i] = (float)(back->du[head * E + i] + sum.du[i]);
}

void ref_wkv_back(struct backend *backend, const struct wkv_back *back, void *work)
{
    (void)backend;
    for (size_t sequence = 0; sequence < back->in.n_seqs; sequence++)
        for (size_t head = 0; head < back->in.heads; head++)
            head_back(back, sequence, head, work);
}
