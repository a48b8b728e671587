/* ref_wkv.c - time mixing token by token, in double (kernels/wkv.h). The state between two calls is
 * fp32, as on every back end. */
#include "kernels/ref/ref_wkv.h"

/* y[E] of the token. RWKV 6 reads the state before it, RWKV 7 the state behind it. */
static void output(const struct token *token, const double *before, const double *behind, float *y)
{
    const struct wkv_rows *in = token->in;
    size_t E = in->head_dim, at = token->at;
    const double *state = in->a ? behind : before;
    for (size_t j = 0; j < E; j++) {
        double sum = 0;
        for (size_t i = 0; i < E; i++)
            sum += in->r[at + i] * (state[i * E + j] + bonus(token, i) * in->v[at + j]);
        y[j] = (float)sum;
    }
}

/* work holds two states and x. */
size_t ref_wkv_work(const struct backend *backend, size_t n_seqs, size_t max_rows, size_t heads,
                    size_t head_dim)
{
    (void)backend, (void)n_seqs, (void)max_rows, (void)heads;
    return (2 * head_dim + 1) * head_dim * sizeof(double);
}

void ref_wkv(struct backend *backend, const struct wkv *wkv, void *work)
{
    (void)backend;
    const struct wkv_rows *in = &wkv->in;
    size_t E = in->head_dim;
    double *before = work, *behind = before + E * E, *x = behind + E * E;
    for (size_t sequence = 0; sequence < in->n_seqs; sequence++)
        for (size_t head = 0; head < in->heads; head++) {
            size_t own = wkv->at ? (size_t)wkv->at[sequence] : sequence;
            float *state = wkv->state + (own * in->heads + head) * E * E;
            widen(behind, state, E * E);
            for (size_t row = 0; row < (size_t)in->seqs[sequence].rows; row++) {
                struct token token = token_at(in, first_row(in, sequence) + row, head);
                memcpy(before, behind, E * E * sizeof *before);
                removed(&token, before, x);
                state_step(&token, before, x, behind);
                output(&token, before, behind, wkv->y + token.at);
            }
            narrow(state, behind, E * E);
        }
}
