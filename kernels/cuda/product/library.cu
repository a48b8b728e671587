/* library.cu - loads the functions of cuBLASLt with dlopen, from the newest version that it finds.
 * If there is no library, or a function is missing, the kernels of kernels/cuda compute all
 * products; the back end is not linked with the library. */
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
