/* pass-chain.c - the rows of a drafter that guesses one id after another (config.chains). A row has
 * an id and a state h [D]. At its first layer
 *
 *     [q; k; v] = W [rmsnorm(embed(id)); rmsnorm(h)],   x = h + Wo attention,   x += ffn(x)
 *
 * and its answer is about the id behind it. For an id of the text, h = F [h_1; ..; h_n] is made of
 * the outputs of n layers of the model at the place before that id. For a guess, h is the x of the
 * row before. Source: Li, Wei, Zhang, Zhang 2025 (arXiv 2503.01840), and the code of its authors
 * (lib/checkpoint/families/eagle3.c). */
#include "lib/network/pass/pass-layer.h"

void pass_join(const struct network *n, const struct work *w, const struct pass *p)
{
    const size_t D = n->config.width;
    const double eps = n->config.norm_eps;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    act *second = pass_row_at(n, w->fed, w->size.rows, D);
    ops->rmsnorm(b, w->fed, w->x, NULL, n->layer->attn_norm, p->T, D, eps);
    ops->rmsnorm(b, second, w->context, NULL, n->fuse_norm, p->T, D, eps);
    ops->rmsnorm(b, w->joined, w->fed, w->device.both, NULL, 2 * p->T, D, 0);
    ops->rmsnorm(b, w->x, w->context, NULL, NULL, p->T, D, 0);
}

void pass_keep_states(const struct network *n, const struct work *w, const act *x,
                      const int32_t *row, size_t R)
{
    n->backend->ops->rmsnorm(n->backend, w->context, x, row, NULL, R, n->config.width, 0);
}
