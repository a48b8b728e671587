/* hub.h - finds checkpoints: a folder, or a name in the local Hugging Face cache. */
#pragma once

#include "lib/base/err.h"

/* "dir" (wins when it exists) or "org/name[@rev]" -> folder with config.json. Root: $HF_HUB_CACHE,
 * else $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub, or
 * ~/.cache/huggingface/hub. NULL: EXIT_NO_INPUT with the `hf download` line to run, or
 * EXIT_BAD_DATA, a folder with an adapter. The caller frees. Never downloads. */
char *hub_folder(const char *name, struct err *e);
/* 1: a link of the folder points inside it, or from a snapshot of the cache to its blobs. */
int hub_contains(const char *folder, const char *path);
/* The name of a model for records: "a/llada-demo/" -> "llada-demo"; a snapshot of the cache -> the
 * name of its repository. Folders of different names give different names. */
enum { HUB_NAME = 64 };
void hub_model_name(const char *folder, char name[HUB_NAME]);
