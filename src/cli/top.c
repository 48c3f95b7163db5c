/* quipu top: what a server does, now, on a terminal. Reads the stream of events that the console reads. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/service.h"
#include "cli/top.h"

#define FOR_EVER_MS  (365LL * 86400 * 1000)
#define LOOK_MS      250     /* how soon a lost stream is opened again, and a signal is noticed */
#define RETRY_US     1000000 /* between two such tries */
#define CONTROL(c)   ((c) - '@')
#define ONCE_SAMPLES 2       /* the first one that tells of tables is the second that is heard */

/* The stream, while the client's thread reads it. */
struct listening {
    struct service service;
    struct arena arena;
    struct client_call call;
    struct buf reply;
    int woken; /* an eventfd */
    pthread_mutex_t lock;
    struct buf text; /* what came and was not taken yet */
    bool has_ended, is_open;
    int64_t ended_us;
};

/* ---- on the client's thread ---- */

static void wake(struct listening *listening)
{
    uint64_t one = 1;
    ssize_t written = write(listening->woken, &one, sizeof one);
    (void)written; /* it is full: somebody was woken already */
}

static bool take_piece(struct client_call *call, struct slice bytes)
{
    struct listening *listening = call->context;
    pthread_mutex_lock(&listening->lock);
    buf_slice(&listening->text, bytes);
    bool goes_on = listening->text.len <= LIMIT_REMOTE_REPLY_BYTES;
    pthread_mutex_unlock(&listening->lock);
    wake(listening);
    return goes_on;
}

static void call_ended(struct client_call *call)
{
    struct listening *listening = call->context;
    pthread_mutex_lock(&listening->lock);
    listening->has_ended = true;
    listening->ended_us = monotonic_us();
    pthread_mutex_unlock(&listening->lock);
    wake(listening);
}

/* ---- the stream ---- */

static void listening_begin(struct listening *listening)
{
    char query[64];
    snprintf(query, sizeof query, "since=%lld",
             (long long)clock_now_ms(&clock_system) - TOP_SECONDS * 1000LL);
    arena_reset(&listening->arena);
    struct request request = request_to("quipu", "GET", "/console/events", NULL);
    request.query = query;
    request.total_ms = FOR_EVER_MS;
    listening->call = service_sign(&listening->service, &listening->arena, &request);
    listening->reply.len = listening->text.len = 0;
    listening->call.reply = &listening->reply;
    listening->call.piece = take_piece;
    listening->call.done = call_ended;
    listening->call.context = listening;
    listening->has_ended = false;
    listening->is_open = true;
    client_begin(listening->service.client, &listening->call);
}

/* The next event that is whole; false: there is none yet. */
static bool next_event(struct listening *listening, struct buf *out)
{
    bool is_found = false;
    pthread_mutex_lock(&listening->lock);
    struct buf *text = &listening->text;
    const char *end = text->len ? memmem(text->data, text->len, "\n\n", 2) : NULL;
    if (end) {
        size_t len = (size_t)(end - text->data);
        out->len = 0;
        buf_put(out, text->data, len);
        memmove(text->data, end + 2, text->len - len - 2);
        text->len -= len + 2;
        is_found = true;
    }
    pthread_mutex_unlock(&listening->lock);
    return is_found;
}

/* Takes what has come; answers how many samples that were. */
static unsigned take_events(struct listening *listening, struct top *top)
{
    struct slice mark = SLICE("data: ");
    struct buf event = {0};
    unsigned samples = 0;
    while (next_event(listening, &event)) {
        const struct node *before = top->sample;
        if (slice_starts(buf_view(&event), mark)) top_take(top, slice_from(buf_view(&event), mark.len));
        samples += top->sample != before;
    }
    buf_free(&event);
    return samples;
}

static bool has_ended(struct listening *listening)
{
    pthread_mutex_lock(&listening->lock);
    bool ended = listening->has_ended;
    pthread_mutex_unlock(&listening->lock);
    return ended;
}

/* The server has answered something else than a stream, or nobody has. EXIT_FINE: it was a stream that broke off. */
static int complain_of_end(struct listening *listening)
{
    struct response response = {.message = ""};
    if (listening->call.end != CLIENT_ANSWERED)
        return complain("nobody answers on %s: %.*s", listening->service.where,
                        SLICE_ARG(listening->call.failure));
    response_read(&response, &listening->arena, &listening->call);
    if (response.error) return service_complain(&response);
    return EXIT_FINE;
}

static bool listening_open(struct listening *listening, const struct arguments *arguments)
{
    *listening = (struct listening){.woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    ensure(listening->woken >= 0);
    pthread_mutex_init(&listening->lock, NULL);
    if (service_open(&listening->service, arguments)) return true;
    close(listening->woken);
    return false;
}

static void listening_close(struct listening *listening)
{
    service_close(&listening->service); /* ends the call */
    close(listening->woken);
    pthread_mutex_destroy(&listening->lock);
    buf_free(&listening->text);
    buf_free(&listening->reply);
    arena_free(&listening->arena);
}

/* Waits for the stream, a key or a signal. */
static void wait_for_more(struct listening *listening, bool with_keys)
{
    uint64_t count;
    struct pollfd sources[] = {{.fd = listening->woken, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    poll(sources, with_keys ? 2 : 1, LOOK_MS);
    while (read(listening->woken, &count, sizeof count) > 0) continue;
}

/* ---- one frame ---- */

static int print_once(struct listening *listening, struct top *top)
{
    struct buf out = {0};
    unsigned samples = 0;
    listening_begin(listening);
    while (samples < ONCE_SAMPLES && !is_interrupted()) {
        wait_for_more(listening, false);
        samples += take_events(listening, top);
        if (samples < ONCE_SAMPLES && has_ended(listening)) {
            int status = complain_of_end(listening);
            return status != EXIT_FINE ? status : complain("the server has ended the stream");
        }
    }
    if (samples < ONCE_SAMPLES) return EXIT_FAULT;
    top_put(&out, top, listening->service.where, terminal_width(), 0, false);
    fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
    return fflush(stdout) == 0 ? EXIT_FINE : EXIT_FAULT;
}

/* ---- on a terminal ---- */

static struct termios before;

static void ignore(int number)
{
    (void)number; /* it only ends the wait */
}

static bool terminal_take(void)
{
    if (tcgetattr(STDIN_FILENO, &before) != 0) return false;
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG); /* Ctrl-C is a key like others */
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    sigaction(SIGWINCH, &(struct sigaction){.sa_handler = ignore}, NULL);
    fputs("\033[?1049h\033[?25l", stdout); /* another screen, without a cursor */
    return true;
}

static void terminal_give_back(void)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

static size_t terminal_height(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : 24;
}

static void draw(const struct top *top, const struct listening *listening, const char *note)
{
    struct buf frame = {0};
    size_t height = terminal_height(), lines = 0;
    buf_text(&frame, "\033[H");
    size_t start = frame.len;
    top_put(&frame, top, listening->service.where, terminal_width(), height - 1, colour_is_wanted());
    fwrite(frame.data, 1, start, stdout);
    for (struct slice rest = slice_from(buf_view(&frame), start); rest.len && lines + 1 < height; lines++) {
        struct slice line = slice_cut(&rest, '\n');
        printf("%.*s\033[K\n", SLICE_ARG(line));
    }
    printf("\033[J\033[%zu;1H%s\033[K", height, note);
    fflush(stdout);
    buf_free(&frame);
}

/* False: it is to end. */
static bool take_keys(struct top *top)
{
    char keys[64];
    ssize_t count = read(STDIN_FILENO, keys, sizeof keys);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    for (ssize_t i = 0; i < count; i++) {
        bool is_arrow = count - i >= 3 && keys[i] == '\033' && (keys[i + 1] == '[' || keys[i + 1] == 'O');
        char key = is_arrow ? keys[i + 2] : keys[i];
        if (!is_arrow && (key == 'q' || key == 'Q' || key == CONTROL('C') || key == CONTROL('D'))) return false;
        if (key == 's' || (is_arrow && key == 'C')) top->sort = (top->sort + 1) % TOP_SORTS;
        if (is_arrow && key == 'D') top->sort = (top->sort + TOP_SORTS - 1) % TOP_SORTS;
        if ((key == 'j' || (is_arrow && key == 'B')) && top->scrolled + 1 < top->tables.count) top->scrolled++;
        if ((key == 'k' || (is_arrow && key == 'A')) && top->scrolled) top->scrolled--;
        if (is_arrow) i += 2;
    }
    if (top->scrolled >= top->tables.count) top->scrolled = top->tables.count ? top->tables.count - 1 : 0;
    return true;
}

static int show(struct listening *listening, struct top *top)
{
    static const char help[] = "q quit   left, right, s sort   up, down scroll";
    int status = EXIT_FINE;
    bool was_heard = false;
    listening_begin(listening);
    if (!terminal_take()) return complain("the terminal cannot be used");
    while (!is_interrupted() && take_keys(top)) {
        was_heard |= take_events(listening, top) > 0;
        bool is_lost = has_ended(listening);
        if (is_lost && !was_heard) break; /* it never was one */
        if (is_lost && monotonic_us() - listening->ended_us > RETRY_US) listening_begin(listening);
        draw(top, listening, is_lost ? "The server does not answer. Trying again. q quits." : help);
        wait_for_more(listening, true);
    }
    terminal_give_back();
    if (!was_heard && has_ended(listening)) status = complain_of_end(listening);
    return status;
}

static int run(const struct arguments *arguments)
{
    struct listening listening;
    struct top *top = must_zero(1, sizeof *top);
    int status = EXIT_FAULT;
    interrupts_catch();
    if (listening_open(&listening, arguments)) {
        bool once = argument_given(arguments, "once") || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
        status = once ? print_once(&listening, top) : show(&listening, top);
        listening_close(&listening);
    }
    top_free(top);
    free(top);
    return status;
}

static const struct flag flags[] = {
    {"once", NULL, "print one frame as plain text and end, as without a terminal"},
};

const struct command command_top = {
    .name = "top",
    .summary = "what a server does, now",
    .usage = "[flags]",
    .about = "Shows, each second, the operations of a running server, how long they took, its memory and disk,\n"
             "the busiest tables, functions and jobs, and the triggers that lag. Keys: q ends it, left and right\n"
             "(or s) choose what tables are sorted by, up and down scroll. It reads what the console reads: a\n"
             "server with --no-console has none.",
    FLAGS(flags),
    .examples = "  quipu top\n"
                "  quipu top --once --on https://db.example.com:8000",
    .works_on_server = true,
    .run = run};
