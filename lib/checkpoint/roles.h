/* roles.h - what a tensor is called in each naming scheme; used by checkpoint*.c. */
#ifndef CHECKPOINT_ROLES_H
#define CHECKPOINT_ROLES_H

#include "lib/checkpoint/checkpoint.h"

enum scheme { SCHEME_LLAMA, SCHEME_LLADA };
enum { ROLE_NAME_MAX = 96 };

/* The tensor's name, for example "model.layers.3.mlp.up_proj.weight". */
void role_tensor_name(char name[ROLE_NAME_MAX], enum scheme scheme, enum role r, size_t layer);
int role_is_norm(enum role r);
/* Layers of a role: L, or 1 when it is not per layer. */
size_t role_layers(const struct config *c, enum role r);

/* -1 (EXIT_BAD_DATA): a tensor of the folder has another shape than config.json makes expect. */
int role_check_shape(const char *folder, const struct tensor *t, const size_t *want, size_t rank,
                     struct err *e);

#endif
