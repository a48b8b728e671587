/* ref_wkv.c - time mixing token by token, in double (kernels/wkv.h). RWKV 6 reads the state before
 * a token, RWKV 7 the state behind it. */
#include "kernels/ref/ref_wkv.h"

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
