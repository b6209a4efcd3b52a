/* A plugin of QEMU that counts the instructions that its guest executes: two 64-bit counters in the file `out`, of the lower and of the upper
   half of the address space (of Linux: of programs and of the kernel). A second processor may lose counts: -smp 1.

   The few declarations of QEMU's plugin interface, version 1, that it takes: Debian does not package the header. */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { ADD = 0 };
struct qemu_plugin_tb;
typedef uint64_t plugin_id;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

EXPORT int qemu_plugin_version = 1;
static uint64_t *counters;

static void translated(plugin_id id, struct qemu_plugin_tb *block) {
    (void)id;
    size_t half = qemu_plugin_tb_vaddr(block) >> 63;
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, counters + half, qemu_plugin_tb_n_insns(block));
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int count, char **arguments) {
    (void)info;
    if (count != 1 || strncmp(arguments[0], "out=", 4) != 0)
        return 1;
    int file = open(arguments[0] + 4, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0)
        return 1;
    counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (counters == MAP_FAILED)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
