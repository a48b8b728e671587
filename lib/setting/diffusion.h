/* diffusion.h - constraints among the settings of masked diffusion. They need no model, so a
 * schedule is refused before one is loaded. diffuse_check() adds the constraints on the model. */
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
    size_t alive, draft;
};
/* 0, or -1 with EXIT_BAD_USAGE naming the constraint that *diffusion breaks. */
int diffusion_check(const struct diffusion *diffusion, struct err *e);

/* 1: all blocks have the same steps. */
int diffusion_is_even(enum unmask rule, double block_decay);
/* Name of a cache policy; 1: it has one of the traits (enum cache_trait). */
const char *diffusion_cache_name(enum caching cache);
int diffusion_cache_has(enum caching cache, int traits);

/* Values of a point that come from two settings: the order (--remasking and --order); the most
 * canvases in a pass, 0: all (--admit and --batch). */
enum order diffusion_order(const struct settings *settings);
size_t diffusion_alive(const struct settings *settings);
