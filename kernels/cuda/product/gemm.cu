/* gemm.cu - gemm.h by cuBLASLt (library.h). Without the library gemm_takes returns 0, and the
 * kernels of kernels/cuda compute all products.
 *
 * The library orders matrices by columns, so it sees y[T, N] = x W^T as y' = W'^T x' with W' [K, N]
 * and x' [K, T]. It proposes algorithms for a shape. If a shape has few tiles, the first proposals
 * are also tried with K in parts. When a shape first comes, all candidates are timed with the
 * caller's x and W, which are only read, and a temporary y (pick.h). The fastest one is kept, also
 * in a file (choices.h). Similar numbers of rows share a choice, so that not every prompt length
 * must be timed. Nothing is timed while operations are recorded; the first run of a pass is never
 * recorded. Algorithms whose order of sums is not fixed are not considered, so two processes can
 * only differ by their choice of algorithm.
 *
 * The work space of the library is one block, which is allocated when it is first needed. The block
 * for timing is freed at once. Both count as activations, so peaks of memory include them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/alloc.h"
#include "kernels/cuda/device/graph.h"
#include "kernels/cuda/product/choices.h"
#include "kernels/cuda/product/gemm.h"
#include "kernels/cuda/product/library.h"
#include "kernels/cuda/product/pick.h"
#include "kernels/cuda/product/slices.h"
#include "lib/base/mem.h"

/* PROPOSALS: most proposals that the library is asked for. The first PARTS_FIRST are also tried in
 * PARTS_LEAST .. LIBRARY_PARTS parts of K, if they would have fewer than WAVES tiles for each
 * multiprocessor. */
enum { PROPOSALS = 64, PARTS_FIRST = 8, PARTS_LEAST = 2, WAVES = 2 };
enum { CANDIDATES = PROPOSALS + PARTS_FIRST * (LIBRARY_PARTS - PARTS_LEAST + 1) };
static const size_t workspace_bytes = (size_t)32 << 20;

struct products {
    struct library lib;
    cublasLtHandle_t handle;
    void *workspace;
    int refused; /* 1: there was no memory for the work space */
    struct choices choices;
    char *path;   /* path of the file of choices; NULL: there is no file */
    int is_named; /* 1: the user named the file, so it is not overwritten if it belongs to another
                   * library */
};

/* Ends the process if the library fails at a problem that it accepted. The failure is reported as a
 * device error, with the driver's message if there is one. */
static void library_check(cublasStatus_t status, const char *call, const char *file, int line)
{
    char text[256];
    if (status == CUBLAS_STATUS_SUCCESS)
        return;
    runtime_check(cudaGetLastError(), call, file, line);
    snprintf(text, sizeof text, "cuBLASLt: %.200s: status %d", call, static_cast<int>(status));
    err_machine(file, line, text);
}
#define LIBRARY(call) library_check(call, #call, __FILE__, __LINE__)

/* ---- descriptions of a product for the library ---- */

struct problem {
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t w, x, y;
    int32_t one_s32, add_s32;
    float one, add;
    const void *alpha, *beta;
};

static cudaDataType_t value_type(enum gemm_job::gemm_type type, int output)
{
    switch (type) {
    case gemm_job::GEMM_F32:
    case gemm_job::GEMM_TF32: return CUDA_R_32F;
    case gemm_job::GEMM_BF16: return CUDA_R_16BF;
    case gemm_job::GEMM_BF16_F32: return output ? CUDA_R_32F : CUDA_R_16BF;
    default: return output ? CUDA_R_32I : CUDA_R_8I;
    }
}

static cublasComputeType_t compute_type(enum gemm_job::gemm_type type)
{
    return type == gemm_job::GEMM_S8     ? CUBLAS_COMPUTE_32I
           : type == gemm_job::GEMM_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                         : CUBLAS_COMPUTE_32F;
}

/* 1 if x, W and y are fp32. */
static int is_float(enum gemm_job::gemm_type type)
{
    return value_type(type, 0) == CUDA_R_32F;
}

/* Tells the library that m is the first of `batch` matrices that lie `step` values apart. */
static void layout_batch(const struct library *library, cublasLtMatrixLayout_t m, int32_t batch,
                         int64_t step)
{
    LIBRARY(library->MatrixLayoutSetAttribute(m, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                              sizeof batch));
    LIBRARY(library->MatrixLayoutSetAttribute(m, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                              sizeof step));
}

static void problem_make(struct problem *problem, const struct library *library,
                         const struct gemm_job *j)
{
    int exact = j->type == gemm_job::GEMM_S8;
    cudaDataType_t in = value_type(j->type, 0), out = value_type(j->type, 1);
    cublasOperation_t turned = CUBLAS_OP_T;
    LIBRARY(library->MatmulDescCreate(&problem->what, compute_type(j->type),
                                      exact ? CUDA_R_32I : CUDA_R_32F));
    LIBRARY(library->MatmulDescSetAttribute(problem->what, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                            sizeof turned));
    LIBRARY(library->MatrixLayoutCreate(&problem->w, in, j->K, j->N, (int64_t)j->ldw));
    LIBRARY(library->MatrixLayoutCreate(&problem->x, in, j->K, j->T, (int64_t)j->ldx));
    LIBRARY(library->MatrixLayoutCreate(&problem->y, out, j->N, j->T, (int64_t)j->ldy));
    if (j->batch > 1) {
        layout_batch(library, problem->w, (int32_t)j->batch, (int64_t)j->step);
        layout_batch(library, problem->x, (int32_t)j->batch, 0);
        layout_batch(library, problem->y, (int32_t)j->batch, (int64_t)j->N);
    }
    problem->one_s32 = 1;
    problem->add_s32 = j->add != 0;
    problem->one = 1;
    problem->add = j->add ? 1.0f : 0.0f;
    problem->alpha = exact ? static_cast<const void *>(&problem->one_s32) : &problem->one;
    problem->beta = exact ? static_cast<const void *>(&problem->add_s32) : &problem->add;
}

static void problem_free(struct problem *problem, const struct library *library)
{
    LIBRARY(library->MatrixLayoutDestroy(problem->y));
    LIBRARY(library->MatrixLayoutDestroy(problem->x));
    LIBRARY(library->MatrixLayoutDestroy(problem->w));
    LIBRARY(library->MatmulDescDestroy(problem->what));
}

static cublasStatus_t problem_run(const struct backend *backend, const struct problem *problem,
                                  const struct gemm_job *j, void *y,
                                  const cublasLtMatmulAlgo_t *algo)
{
    const struct products *products = device_of(backend)->gemm;
    return products->lib.Matmul(products->handle, problem->what, problem->alpha, j->w, problem->w,
                                j->x, problem->x, problem->beta, y, problem->y, y, problem->y, algo,
                                products->workspace, products->workspace ? workspace_bytes : 0,
                                device_stream(backend));
}

/* ---- choice of an algorithm ---- */

/* The alignment of an address: the largest power of two up to 256 that divides it. */
static uint32_t alignment(const void *p)
{
    uintptr_t lowest = reinterpret_cast<uintptr_t>(p) & (~reinterpret_cast<uintptr_t>(p) + 1);
    return lowest == 0 || lowest > 256 ? 256 : static_cast<uint32_t>(lowest);
}

static void key_of(uint64_t key[CHOICE_KEY], const struct gemm_job *j)
{
    uint64_t align = (uint64_t)alignment(j->w) << 32 | alignment(j->x) << 16 | alignment(j->y);
    uint64_t batch = j->batch > 1 ? j->batch : 0;
    const uint64_t all[CHOICE_KEY] = {(uint64_t)j->type, batch << 1 | (j->add != 0), align,
                                      rows_step(j->T), j->N, j->K, j->ldy, j->ldx, j->ldw};
    memcpy(key, all, sizeof all);
}

/* 1 if results of the algorithm repeat bit for bit. They do not if parts are added in the order in
 * which blocks end. */
static int repeats(const struct library *library, const cublasLtMatmulAlgo_t *algo)
{
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_INPLACE;
    size_t written;
    return library->MatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                                 &scheme, sizeof scheme,
                                                 &written) == CUBLAS_STATUS_SUCCESS &&
           (scheme == CUBLASLT_REDUCTION_SCHEME_NONE ||
            scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
}

/* Fills found[PROPOSALS] with the library's proposals that repeat, in the library's order. Returns
 * their number. */
static int propose(const struct products *products, const struct problem *problem,
                   const struct gemm_job *j, cublasLtMatmulHeuristicResult_t *found)
{
    const struct library *library = &products->lib;
    cublasLtMatmulPreference_t wish;
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE; /* no reduction is always allowed */
    size_t bytes = products->workspace ? workspace_bytes : 0;
    uint32_t align[3] = {alignment(j->w), alignment(j->x), alignment(j->y)};
    LIBRARY(library->MatmulPreferenceCreate(&wish));
    auto set = [&](cublasLtMatmulPreferenceAttributes_t what, const void *value, size_t size) {
        LIBRARY(library->MatmulPreferenceSetAttribute(wish, what, value, size));
    };
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align[0], sizeof align[0]);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align[1], sizeof align[1]);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align[2], sizeof align[2]);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align[2], sizeof align[2]);
    int n = 0, kept = 0;
    if (library->MatmulAlgoGetHeuristic(products->handle, problem->what, problem->w, problem->x,
                                        problem->y, problem->y, wish, PROPOSALS, found,
                                        &n) != CUBLAS_STATUS_SUCCESS)
        n = 0;
    for (int i = 0; i < n; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS && repeats(library, &found[i].algo))
            found[kept++] = found[i];
    LIBRARY(library->MatmulPreferenceDestroy(wish));
    return kept;
}

static_assert(sizeof(cublasLtMatmulAlgo_t) == CHOICE_WORDS * sizeof(uint64_t), "as in the file");

/* 1 if the library takes an algorithm that it did not propose for this problem. */
static int is_valid(const struct products *products, const struct problem *problem,
                    const cublasLtMatmulAlgo_t *algo)
{
    cublasLtMatmulHeuristicResult_t result;
    return products->lib.MatmulAlgoCheck(products->handle, problem->what, problem->w, problem->x,
                                         problem->y, problem->y, algo,
                                         &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= (products->workspace ? workspace_bytes : 0) &&
           repeats(&products->lib, algo);
}

/* 1 if a choice from a file, or for another number of rows, is valid for this problem. */
static int still_good(const struct products *products, const struct problem *problem,
                      const struct gemm_choice *choice)
{
    cublasLtMatmulAlgo_t algo;
    memcpy(&algo, choice->algo, sizeof algo);
    return is_valid(products, problem, &algo);
}

/* 1 if a product may leave multiprocessors idle. */
static int is_small(const struct backend *backend, const struct gemm_job *j)
{
    size_t batch = j->batch > 1 ? j->batch : 1;
    return blocks_of(j->T, LIBRARY_TILE) * blocks_of(j->N, LIBRARY_TILE) * batch <
           (size_t)WAVES * device_of(backend)->sms;
}

/* Appends candidates to the n proposals in `found`: the first proposals with K in parts, whose sums
 * are added in order. Returns the number of all candidates. */
static int add_splits(const struct products *products, const struct problem *problem,
                      cublasLtMatmulHeuristicResult_t *found, int n)
{
    const struct library *library = &products->lib;
    const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    int all = n;
    for (int i = 0; i < n && i < PARTS_FIRST; i++)
        for (int32_t parts = PARTS_LEAST; parts <= LIBRARY_PARTS; parts++) {
            found[all] = found[i];
            cublasLtMatmulAlgo_t *algo = &found[all].algo;
            all += library->MatmulAlgoConfigSetAttribute(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                         &parts,
                                                         sizeof parts) == CUBLAS_STATUS_SUCCESS &&
                   library->MatmulAlgoConfigSetAttribute(algo,
                                                         CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                                         &scheme, sizeof scheme) ==
                       CUBLAS_STATUS_SUCCESS &&
                   is_valid(products, problem, algo);
        }
    return all;
}

/* Sets the state of a new choice, or of a choice from the file, without running anything. */
static void guess(const struct products *products, struct gemm_choice *choice,
                  const struct gemm_job *j)
{
    struct problem problem;
    cublasLtMatmulHeuristicResult_t found[PROPOSALS];
    static const uint64_t none[CHOICE_WORDS] = {0};
    problem_make(&problem, &products->lib, j);
    if (memcmp(choice->algo, none, sizeof none) != 0 && still_good(products, &problem, choice)) {
        choice->state = 2;
    } else {
        choice->state = propose(products, &problem, j, found) > 0 ? 1 : -1;
        if (choice->state == 1)
            memcpy(choice->algo, &found[0].algo, sizeof choice->algo);
    }
    choice->rows = j->T;
    problem_free(&problem, &products->lib);
}

/* Checks a choice that was last checked for another number of rows. If it is not valid for this
 * number, it is replaced by the library's first proposal. */
static void suit_rows(const struct products *products, const struct problem *problem,
                      struct gemm_choice *choice, const struct gemm_job *j)
{
    cublasLtMatmulHeuristicResult_t found[PROPOSALS];
    if (choice->rows == j->T)
        return;
    if (!still_good(products, problem, choice) && propose(products, problem, j, found) > 0) {
        if (memcmp(choice->algo, &found[0].algo, sizeof choice->algo))
            choice->used = 0;
        memcpy(choice->algo, &found[0].algo, sizeof choice->algo);
        choice->state = 3;
    }
    choice->rows = j->T;
}

/* The argument of trial_run(), which runs candidate i (pick.h). */
struct trial {
    const struct backend *b;
    const struct problem *p;
    const struct gemm_job *j;
    void *y;
    const cublasLtMatmulHeuristicResult_t *found;
};

static int trial_run(void *ctx, size_t i)
{
    const struct trial *trial = static_cast<const struct trial *>(ctx);
    return problem_run(trial->b, trial->p, trial->j, trial->y, &trial->found[i].algo) ==
                   CUBLAS_STATUS_SUCCESS
               ? 0
               : -1;
}

/* Times every candidate and keeps the fastest one. If none can run, the choice says that the
 * library does not take this shape. room: `zeros` bytes for pick.h, then y. */
static void tune_in(const struct backend *backend, struct gemm_choice *choice,
                    const struct gemm_job *j, uint8_t *room, size_t zeros)
{
    const struct products *products = device_of(backend)->gemm;
    struct problem problem;
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    problem_make(&problem, &products->lib, j);
    int n = propose(products, &problem, j, found);
    if (is_small(backend, j))
        n = add_splits(products, &problem, found, n);
    struct trial trial = {backend, &problem, j, room + zeros, found};
    const struct pick ways = {(size_t)n, trial_run, &trial};
    size_t best = pick_fastest(backend, &ways, zeros ? room : nullptr);
    choice->rows = j->T;
    choice->state = best < ways.n ? 2 : -1;
    if (choice->state == 2)
        memcpy(choice->algo, &found[best].algo, sizeof choice->algo);
    problem_free(&problem, &products->lib);
}

/* Allocates memory and calls tune_in(). If memory is short, candidates are timed with weights that
 * may be in the L2 cache; if there is no memory even for y, the library's first proposal stays. */
static void tune(const struct backend *backend, struct gemm_choice *choice,
                 const struct gemm_job *j)
{
    struct backend *counted = const_cast<struct backend *>(backend);
    size_t y = j->T * j->ldy * (j->type == gemm_job::GEMM_BF16 ? 2 : 4),
           zeros = pick_bytes(backend);
    void *room = cuda_alloc(counted, zeros + y, MEMORY_ACTIVATIONS);
    if (!room)
        room = cuda_alloc(counted, y, MEMORY_ACTIVATIONS), zeros = 0;
    if (!room) {
        choice->state = 3;
        return;
    }
    tune_in(backend, choice, j, static_cast<uint8_t *>(room), zeros);
    alloc_return(counted, room);
}

/* Writes the file. It is called after each timing, so that a process that is stopped loses nothing.
 * Entries that another process has written meanwhile are read first and kept. */
static void keep_choices(struct products *products, const char *library)
{
    struct err ignored = {};
    if (!products->path ||
        (choices_read(&products->choices, products->path, library, &ignored) && products->is_named))
        return;
    choices_write(&products->choices, products->path, library);
}

/* The choice for a job, timed now if it is not timed and timing is possible. */
static struct gemm_choice *choice_of(const struct backend *backend, const struct gemm_job *j)
{
    struct products *products = device_of(backend)->gemm;
    uint64_t key[CHOICE_KEY];
    key_of(key, j);
    struct gemm_choice *choice = choices_find(&products->choices, key);
    if (!choice)
        choice = choices_add(&products->choices, key);
    if (choice->state == 0)
        guess(products, choice, j);
    if (choice->state == 1 && !graph_recording(backend)) {
        tune(backend, choice, j);
        keep_choices(products, backend->library);
        choice = choices_find(&products->choices, key); /* the table may have moved in memory */
    }
    return choice;
}

/* ---- the functions of gemm.h ---- */

/* Called before the first choice, so that all choices know the size of the work space. */
static void take_workspace(struct backend *backend)
{
    struct products *products = device_of(backend)->gemm;
    if (products->workspace || products->refused || graph_recording(backend))
        return;
    products->workspace = cuda_alloc(backend, workspace_bytes, MEMORY_ACTIVATIONS);
    products->refused = !products->workspace;
}

int gemm_takes(const struct backend *backend, const struct gemm_job *j)
{
    size_t grain = j->type == gemm_job::GEMM_S8 ? 16 : is_float(j->type) ? 1 : 8;
    if (!device_of(backend)->gemm || j->ldx % grain || j->ldw % grain)
        return 0;
    if (j->type == gemm_job::GEMM_S8 && (j->K % 16 || j->N % 16))
        return 0;
    if (grain > 1 && (alignment(j->x) < 16 || alignment(j->w) < 16 || j->step % grain))
        return 0;
    waiting here(device_of(backend), "matmul"); /* as launch() does */
    take_workspace(const_cast<struct backend *>(backend));
    return choice_of(backend, j)->state > 0;
}

void gemm(struct backend *backend, const struct gemm_job *j)
{
    struct problem problem;
    cublasLtMatmulAlgo_t algo;
    waiting here(device_of(backend), "matmul"); /* as launch() does */
    struct gemm_choice *choice = choice_of(backend, j);
    assert(choice->state > 0); /* gemm_takes returned 1 */
    problem_make(&problem, &device_of(backend)->gemm->lib, j);
    suit_rows(device_of(backend)->gemm, &problem, choice, j);
    if (!choice->used++)
        backend->library_choices += choices_hash(choice);
    memcpy(&algo, choice->algo, sizeof algo);
    LIBRARY(problem_run(backend, &problem, j, j->y, &algo));
    problem_free(&problem, &device_of(backend)->gemm->lib);
}

int gemm_open(struct backend *backend, struct err *e)
{
    const char *named = getenv("CROSSOVER_GEMM_CHOICES");
    struct device *device = device_of(backend);
    struct products *products = static_cast<struct products *>(mem_zero(1, sizeof *products));
    struct err ignored = {};
    device->gemm = nullptr;
    if (library_open(&products->lib)) {
        free(products);
        return 0;
    }
    LIBRARY(products->lib.Create(&products->handle));
    device->gemm = products;
    size_t version = products->lib.GetVersion();
    snprintf(backend->library, sizeof backend->library, "cuBLASLt %zu", version);
    products->is_named = named && *named;
    products->path = products->is_named ? mem_text(named) : choices_path(backend->name, version);
    if (!products->path || !choices_read(&products->choices, products->path, backend->library,
                                         products->is_named ? e : &ignored))
        return 0;
    return products->is_named ? err_prefix(e, "--gemm-choices") : 0;
}

void gemm_close(struct backend *backend)
{
    struct products *products = device_of(backend)->gemm;
    if (!products)
        return;
    cuda_free(backend, products->workspace);
    LIBRARY(products->lib.Destroy(products->handle));
    choices_free(&products->choices);
    free(products->path);
    free(products);
    device_of(backend)->gemm = nullptr;
}
