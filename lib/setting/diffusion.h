/* diffusion.h - constraints among the settings of masked diffusion. The checks here need no model,
 * so a wrong schedule is refused before a model is loaded. diffuse_check() (lib/decode/diffuse.h)
 * checks the constraints on the model. */
#pragma once

#include "kernels/order/orders.h"
#include "kernels/unmask/rules.h"
#include "lib/base/err.h"
#include "lib/setting/words.h"
#include "lib/setting/settings.h"

/* The settings that constrain each other; names as in struct diffuse (lib/decode/diffuse.h). */
struct diffusion {
    size_t gen_length, block_length, steps;
    double block_decay, temperature, cfg_scale;
    enum order order;
    enum unmask rule;
    enum caching cache;
    enum suffix_kind suffix;
    size_t alive, draft; /* alive: most canvases in a pass, 0: all canvases of the batch; draft:
                          * --draft-steps */
};
/* 0, or -1 with EXIT_BAD_USAGE naming the constraint that *diffusion breaks. */
int diffusion_check(const struct diffusion *diffusion, struct err *e);

/* 1: all blocks have the same steps. */
int diffusion_is_even(enum unmask rule, double block_decay);
const char *diffusion_cache_name(enum caching cache); /* the word of --cache */
/* 1: the cache policy has one or more of the traits (enum cache_trait, combined with |). */
int diffusion_cache_has(enum caching cache, int traits);

/* Two values of a point that depend on two settings each. diffusion_order: the order of commits,
 * from --remasking and --order. diffusion_alive: struct diffusion.alive, from --admit and
 * --batch. */
enum order diffusion_order(const struct settings *settings);
size_t diffusion_alive(const struct settings *settings);
