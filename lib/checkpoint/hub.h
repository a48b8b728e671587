/* hub.h - finds checkpoints: a folder, or a name in the local Hugging Face cache. */
#pragma once

#include "lib/base/err.h"

/* The folder of a checkpoint; the caller frees. name: the folder itself, or "org/name[@rev]" in the
 * cache; an existing folder wins. Root of the cache: $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE,
 * $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub, or ~/.cache/huggingface/hub. Never downloads.
 * NULL: EXIT_NO_INPUT with the `hf download` line to run; EXIT_BAD_DATA: the folder has an
 * adapter. */
char *hub_folder(const char *name, struct err *e);
/* 1: the link `path` in `folder` points into the folder; or the folder is a snapshot of the cache,
 * and the link points to the blobs of the cache. */
int hub_contains(const char *folder, const char *path);
/* The name of a model for records: "a/llada-demo/" -> "llada-demo"; a snapshot of the cache -> the
 * name of its repository. Folders of different names give different names. */
enum { HUB_NAME = 64 };
void hub_model_name(const char *folder, char name[HUB_NAME]);
