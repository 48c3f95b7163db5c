/* Whose connection it is: a program's own, its children's, anybody else's. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "sandbox/internal.h"
#include "unit/sandbox_fixture.h"

static int listen_here(uint16_t *port)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof place;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ensure(bind(fd, (struct sockaddr *)&place, len) == 0 && listen(fd, 16) == 0);
    ensure(getsockname(fd, (struct sockaddr *)&place, &len) == 0);
    *port = ntohs(place.sin_port);
    return fd;
}

static int accept_here(int listener, uint16_t *peer_port)
{
    struct sockaddr_in place;
    socklen_t len = sizeof place;
    int fd = accept4(listener, (struct sockaddr *)&place, &len, SOCK_CLOEXEC);
    ensure(fd >= 0);
    *peer_port = ntohs(place.sin_port);
    return fd;
}

static int connect_here(uint16_t port, bool is_mapped)
{
    struct sockaddr_in place = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    ensure(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr) == 1);
    int fd = socket(is_mapped ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = is_mapped ? connect(fd, (struct sockaddr *)&mapped, sizeof mapped)
                           : connect(fd, (struct sockaddr *)&place, sizeof place);
    ensure(result == 0);
    return fd;
}

struct asked {
    struct sandbox_question question;
    pthread_mutex_t lock;
    pthread_cond_t change;
    unsigned answers;
    enum sandbox_peer peer;
};

static void on_answer(struct sandbox_question *question, enum sandbox_peer peer)
{
    struct asked *asked = (struct asked *)question;
    pthread_mutex_lock(&asked->lock);
    asked->answers++;
    asked->peer = peer;
    pthread_cond_broadcast(&asked->change);
    pthread_mutex_unlock(&asked->lock);
}

static enum sandbox_peer ask(struct sandboxed *sandboxed, uint16_t port, uint16_t peer_port)
{
    struct asked asked = {.question = {port, peer_port, on_answer, NULL},
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .change = PTHREAD_COND_INITIALIZER};
    sandbox_ask_peer(sandboxed, &asked.question);
    pthread_mutex_lock(&asked.lock);
    while (!asked.answers) pthread_cond_wait(&asked.change, &asked.lock);
    pthread_mutex_unlock(&asked.lock);
    CHECK_INT(asked.answers, 1);
    return asked.peer;
}

static _Atomic unsigned own_answers, other_answers;

static void count_answer(struct sandbox_question *question, enum sandbox_peer peer)
{
    (void)question;
    atomic_fetch_add(peer == SANDBOX_PEER_OWN ? &own_answers : &other_answers, 1);
}

/* A bash with a text in which PORT is the port. */
static void heard_bash(struct heard *heard, struct sandbox *sandbox, uint16_t port, const char *text)
{
    char whole[1000];
    snprintf(whole, sizeof whole, "PORT=%u; %s", port, text);
    heard_run(heard, sandbox,
              &(struct sandbox_program){.arguments = (const char *[]){"/bin/bash", "-c", whole, NULL}});
}

static void check_held(const char *text)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard, other;
    uint16_t port, peer_port;
    int listener = listen_here(&port);
    heard_bash(&heard, sandbox, port, text);
    heard_shell(&other, sandbox, "echo up; sleep 1000");
    int fd = accept_here(listener, &peer_port);
    heard_wait_for(&heard, "up");
    heard_wait_for(&other, "up");
    CHECK_INT(ask(heard.sandboxed, port, peer_port), SANDBOX_PEER_OWN);
    CHECK_INT(ask(other.sandboxed, port, peer_port), SANDBOX_PEER_STRANGER);
    CHECK_INT(ask(heard.sandboxed, peer_port, port), SANDBOX_PEER_STRANGER); /* our own end */
    sandbox_stop(heard.sandboxed, 0);
    heard_wait(&heard);
    CHECK_INT(ask(heard.sandboxed, port, peer_port), SANDBOX_PEER_GONE);
    sandbox_stop(other.sandboxed, 0);
    heard_free(&heard);
    heard_free(&other);
    close(fd);
    close(listener);
    sandbox_free(sandbox);
}

TEST(peer_is_the_program)
{
    check_held("exec 3<>/dev/tcp/127.0.0.1/$PORT; echo up; sleep 1000");
}

TEST(peer_is_a_child_in_a_session_of_its_own_whose_parent_has_gone)
{
    check_held(
        "(setsid bash -c 'exec 3<>/dev/tcp/127.0.0.1/'$PORT'; echo up; exec sleep 1000' &) ; sleep 1000");
}

TEST(peer_is_a_child_that_got_the_connection_from_its_parent)
{
    check_held("exec 3<>/dev/tcp/127.0.0.1/$PORT; sleep 1000 & exec 3>&-; echo up; wait");
}

TEST(peer_has_the_connection_as_its_standard_input)
{
    check_held("exec <>/dev/tcp/127.0.0.1/$PORT; echo up; exec sleep 1000");
}

TEST(peer_is_a_stranger)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    uint16_t port, peer_port;
    int listener = listen_here(&port), mine = connect_here(port, false);
    int fd = accept_here(listener, &peer_port);
    heard_bash(&heard, sandbox, port, "echo up; sleep 1000");
    heard_wait_for(&heard, "up");
    CHECK_INT(ask(heard.sandboxed, port, peer_port), SANDBOX_PEER_STRANGER);
    close(mine); /* nobody's now: our end still waits */
    CHECK_INT(ask(heard.sandboxed, port, peer_port), SANDBOX_PEER_GONE);
    CHECK_INT(ask(heard.sandboxed, port, port), SANDBOX_PEER_GONE);
    CHECK_INT(ask(heard.sandboxed, port, 1), SANDBOX_PEER_GONE);
    sandbox_stop(heard.sandboxed, 0);
    heard_free(&heard);
    close(fd);
    close(listener);
    sandbox_free(sandbox);
}

/* A program that listens where a stranger's connection came from holds a socket at those addresses, too. */
TEST(peer_is_no_listener)
{
    uint64_t inode;
    uint16_t port, peer_port;
    int listener = listen_here(&port), other = listen_here(&peer_port);
    CHECK_INT(peer_inode_by_diag(port, peer_port, &inode), PEER_INODE_NONE);
    CHECK_INT(peer_inode_by_lists(port, peer_port, &inode), PEER_INODE_NONE);
    close(listener);
    close(other);
}

TEST(peer_inode_is_the_same_by_both_ways)
{
    for (int is_mapped = 0; is_mapped < 2; is_mapped++) {
        uint64_t by_diag = 0, by_lists = 1;
        uint16_t port, peer_port;
        int listener = listen_here(&port), mine = connect_here(port, is_mapped);
        int fd = accept_here(listener, &peer_port);
        CHECK_INT(peer_inode_by_diag(port, peer_port, &by_diag), PEER_INODE_FOUND);
        CHECK_INT(peer_inode_by_lists(port, peer_port, &by_lists), PEER_INODE_FOUND);
        CHECK(by_diag != 0 && by_diag == by_lists);
        shutdown(mine, SHUT_WR); /* it may still read our reply */
        CHECK_INT(peer_inode_by_diag(port, peer_port, &by_diag), PEER_INODE_FOUND);
        CHECK_INT(peer_inode_by_lists(port, peer_port, &by_lists), PEER_INODE_FOUND);
        close(mine);
        CHECK(peer_inode_by_diag(port, peer_port, &by_diag) != PEER_INODE_FOUND);
        CHECK_INT(peer_inode_by_lists(port, peer_port, &by_lists), PEER_INODE_NONE);
        close(fd);
        close(listener);
    }
}

/* More than the socket to its keeper holds: a function that opens hundreds of connections at once. */
TEST(peer_is_told_for_a_thousand_questions_at_once)
{
    static struct sandbox_question questions[1000];
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    uint16_t port, peer_port;
    int listener = listen_here(&port);
    heard_bash(&heard, sandbox, port, "exec 3<>/dev/tcp/127.0.0.1/$PORT; echo up; sleep 1000");
    int fd = accept_here(listener, &peer_port);
    heard_wait_for(&heard, "up");
    for (size_t i = 0; i < 1000; i++) {
        questions[i] = (struct sandbox_question){port, peer_port, count_answer, NULL};
        sandbox_ask_peer(heard.sandboxed, &questions[i]);
    }
    while (atomic_load(&own_answers) + atomic_load(&other_answers) < 1000) poll(NULL, 0, 1);
    CHECK_INT(atomic_load(&own_answers), 1000);
    sandbox_stop(heard.sandboxed, 0);
    heard_free(&heard);
    close(fd);
    close(listener);
    sandbox_free(sandbox);
}
