/* library.cu - the functions of cuBLASLt by dlopen, the newest version that the machine has. Where
 * there is none, or one that lacks a function, the tools run all the same on the kernels of
 * kernels/cuda: nothing of the library is needed to load the back end.
 */
#include <dlfcn.h>

#include "kernels/cuda/product/library.h"

int library_open(struct library *l)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "libcublasLt.so.11"};
    void *object = nullptr;
    for (const char *name : names)
        if ((object = dlopen(name, RTLD_NOW | RTLD_LOCAL)))
            break;
    if (!object)
        return -1;
    int found = 1;
#define FIND(name)                                                                               \
    l->name = reinterpret_cast<decltype(l->name)>(dlsym(object, "cublasLt" #name));             \
    found = found && l->name;
    EACH_FUNCTION(FIND)
#undef FIND
    return found ? 0 : -1;
}
