/* pass-chain.c - the rows of a drafter that guesses one id after another (config.chains). A row has
 * an id and a state h [D]. The first layer computes
 *
 *     [q; k; v] = W [rmsnorm(embed(id)); rmsnorm(h)],   x = h + Wo attention,   x += ffn(x)
 *
 * The answer of the row is a guess of the next id. For an id of the text, h = F [h_1; ..; h_n],
 * where h_i are the outputs of n layers of the model at the place before this id (pass_fuse). For a
 * guessed id, h is the x of the row before, after all layers. Source: Li, Wei, Zhang, Zhang 2025
 * (EAGLE-3, arXiv 2503.01840), and the code of its authors (lib/checkpoint/families/eagle3.c). */
#include "lib/network/pass/pass-layer.h"

void pass_join(const struct network *n, const struct work *work, const struct pass *pass)
{
    const size_t D = n->config.width;
    const double eps = n->config.norm_eps;
    struct backend *backend = n->backend;
    const struct ops *ops = backend->ops;
    act *second = pass_row_at(n, work->fed, work->size.rows, D);
    ops->rmsnorm(backend, work->fed, work->x, NULL, n->layer->attn_norm, pass->T, D, eps);
    ops->rmsnorm(backend, second, work->context, NULL, n->fuse_norm, pass->T, D, eps);
    ops->rmsnorm(backend, work->joined, work->fed, work->device.both, NULL, 2 * pass->T, D, 0);
    ops->rmsnorm(backend, work->x, work->context, NULL, NULL, pass->T, D, 0);
}

void pass_keep_states(const struct network *n, const struct work *work, const act *x,
                      const int32_t *row, size_t R)
{
    n->backend->ops->rmsnorm(n->backend, work->context, x, row, NULL, R, n->config.width, 0);
}
