/* What to run, as a file in memory: the server writes it once, the keeper maps it. So a request of any size
 * is one small packet with a descriptor on the nursery's socket, and the nursery need not understand it. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "sandbox/internal.h"

/* At the beginning of the file; the texts follow, each ended by NUL: the folder, the temporary folder, /opt,
 * the folder of files and where it lies, arguments, environment. */
struct request_head {
    uint64_t memory_bytes, storage_bytes;
    uint32_t process_count, argument_count, environment_count;
    int32_t priority;
    uint32_t has_own_tmp, has_temporary, has_opt, has_files;
    struct sandbox_user user;
};

static uint32_t put_texts(struct buf *out, const char *const *texts)
{
    uint32_t count = 0;
    for (; texts && texts[count] && out->len <= LIMIT_SANDBOX_REQUEST_BYTES; count++)
        buf_put(out, texts[count], strlen(texts[count]) + 1);
    return count;
}

static int file_with(struct slice bytes, int *error)
{
    int file = memfd_create("quipu-program", MFD_CLOEXEC);
    if (file >= 0 && write(file, bytes.data, bytes.len) == (ssize_t)bytes.len) return file;
    *error = file >= 0 ? ENOSPC : errno;
    if (file >= 0) close(file);
    return -1;
}

int request_write(const struct sandbox_program *program, const struct sandbox_user *user, int *error)
{
    struct request_head head = {.memory_bytes = program->memory_bytes,
                                .storage_bytes = program->storage_bytes,
                                .process_count = program->process_count,
                                .priority = getpriority(PRIO_PROCESS, 0),
                                .has_own_tmp = program->has_own_tmp,
                                .has_temporary = program->temporary != NULL,
                                .has_opt = program->opt != NULL,
                                .has_files = program->files != NULL,
                                .user = *user};
    const char *temporary = program->temporary ? program->temporary : "";
    const char *opt = program->opt ? program->opt : "";
    const char *files = program->files ? program->files : "", *files_at = program->files ? program->files_at : "";
    struct buf out = {0};
    buf_put(&out, &head, sizeof head);
    buf_put(&out, program->folder, strlen(program->folder) + 1);
    buf_put(&out, temporary, strlen(temporary) + 1);
    buf_put(&out, opt, strlen(opt) + 1);
    buf_put(&out, files, strlen(files) + 1);
    buf_put(&out, files_at, strlen(files_at) + 1);
    head.argument_count = put_texts(&out, program->arguments);
    head.environment_count = put_texts(&out, program->environment);
    memcpy(out.data, &head, sizeof head);
    *error = E2BIG;
    int file = out.len <= LIMIT_SANDBOX_REQUEST_BYTES ? file_with(buf_view(&out), error) : -1;
    buf_free(&out);
    return file;
}

/* The next text; NULL when the file ends before it does. */
static char *take_text(char **at, char *end)
{
    char *text = *at, *stop = memchr(text, 0, (size_t)(end - text));
    if (stop) *at = stop + 1;
    return stop ? text : NULL;
}

static char **take_texts(char **at, char *end, char **room, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!(room[i] = take_text(at, end))) return NULL;
    room[count] = NULL;
    return room;
}

int request_read(int file, struct request *out)
{
    struct stat stat;
    if (fstat(file, &stat) != 0) return errno;
    size_t len = (size_t)stat.st_size;
    if (len < sizeof(struct request_head) || len > LIMIT_SANDBOX_REQUEST_BYTES) return EINVAL;
    char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0), *end = at + len;
    if (at == MAP_FAILED) return errno;
    struct request_head head;
    memcpy(&head, at, sizeof head);
    at += sizeof head;
    if (!head.argument_count || head.argument_count > len || head.environment_count > len) return EINVAL;
    size_t texts = (size_t)head.argument_count + head.environment_count + 2;
    char **room = mmap(NULL, texts * sizeof *room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
    if (room == MAP_FAILED) return errno;
    *out = (struct request){
        .memory_bytes = head.memory_bytes, .process_count = head.process_count, .priority = head.priority};
    out->storage_bytes = head.storage_bytes;
    out->has_own_tmp = head.has_own_tmp != 0;
    out->user = head.user;
    out->folder = take_text(&at, end);
    if (!out->folder) return EINVAL;
    out->temporary = take_text(&at, end);
    if (!out->temporary) return EINVAL;
    if (!head.has_temporary) out->temporary = NULL;
    out->opt = take_text(&at, end);
    if (!out->opt) return EINVAL;
    if (!head.has_opt) out->opt = NULL;
    out->files = take_text(&at, end);
    if (!out->files) return EINVAL;
    out->files_at = take_text(&at, end);
    if (!out->files_at) return EINVAL;
    if (!head.has_files) out->files = NULL;
    out->arguments = take_texts(&at, end, room, head.argument_count);
    if (!out->arguments) return EINVAL;
    out->environment = take_texts(&at, end, room + head.argument_count + 1, head.environment_count);
    return out->environment ? 0 : EINVAL;
}
