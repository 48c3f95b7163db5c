/* The tree is a treap: ordered by key, and a heap by priorities drawn at random when a key comes in, which
 * keeps it balanced without any bookkeeping (depth about 2 log2 n for any order of inserts) and makes cutting
 * out a range as cheap as one insert. Binary rather than wide nodes, because copying a node must count every
 * child that the copy shares: two here, dozens in a B-tree, each a cache miss.
 *
 * Invariants:
 *  T1. In-order keys strictly increase; a parent's priority is at least its children's.
 *  T2. A node with more than one reference is never changed, and neither is anything below it.
 *  T3. `count` and `bytes` of a node are the sums over its subtree.
 * Recursion goes as deep as the tree; priorities come from the system's randomness, so no client can choose
 * keys that make it deep. */
#include "store/tree.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/fail.h"

struct entry {
    _Atomic uint32_t references;
    uint32_t key_len;
    size_t value_len;
    char bytes[]; /* key, then value */
};

struct tree_node {
    _Atomic uint32_t references;
    uint32_t priority;
    struct tree_node *left, *right;
    struct entry *entry;
    uint64_t count, bytes;
};

/* ---- entries ---- */

static struct entry *entry_new(struct slice key, struct slice value)
{
    ensure(key.len <= UINT32_MAX);
    struct entry *entry = must_alloc(sizeof *entry + key.len + value.len);
    atomic_init(&entry->references, 1);
    entry->key_len = (uint32_t)key.len;
    entry->value_len = value.len;
    if (key.len) memcpy(entry->bytes, key.data, key.len);
    if (value.len) memcpy(entry->bytes + key.len, value.data, value.len);
    return entry;
}

static struct slice entry_key(const struct entry *entry)
{
    return (struct slice){entry->bytes, entry->key_len};
}

static struct slice entry_value(const struct entry *entry)
{
    return (struct slice){entry->bytes + entry->key_len, entry->value_len};
}

static void count_up(_Atomic uint32_t *references)
{
    atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/* True when that was the last reference: everything its former holders did happened before. */
static bool count_down(_Atomic uint32_t *references)
{
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

static void entry_release(struct entry *entry)
{
    if (count_down(&entry->references)) free(entry);
}

/* ---- nodes ---- */

struct tree_node *tree_hold(struct tree_node *tree)
{
    if (tree) count_up(&tree->references);
    return tree;
}

void tree_release(struct tree_node *tree)
{
    while (tree && count_down(&tree->references)) {
        struct tree_node *right = tree->right;
        tree_release(tree->left);
        entry_release(tree->entry);
        free(tree);
        tree = right;
    }
}

static void node_sum(struct tree_node *node)
{
    node->count = 1 + tree_count(node->left) + tree_count(node->right);
    node->bytes = sizeof *node + sizeof *node->entry + node->entry->key_len + node->entry->value_len +
                  tree_bytes(node->left) + tree_bytes(node->right);
}

static struct tree_node *node_new(struct entry *entry, uint32_t priority)
{
    struct tree_node *node = must_zero(1, sizeof *node);
    atomic_init(&node->references, 1);
    node->priority = priority;
    node->entry = entry;
    node_sum(node);
    return node;
}

/* Turns the caller's reference into one that it alone holds: the node itself, or a copy of it (T2). */
static struct tree_node *node_own(struct tree_node *node)
{
    if (atomic_load_explicit(&node->references, memory_order_acquire) == 1) return node;
    struct tree_node *copy = must_alloc(sizeof *copy);
    atomic_init(&copy->references, 1);
    copy->priority = node->priority;
    copy->left = tree_hold(node->left);
    copy->right = tree_hold(node->right);
    copy->entry = node->entry;
    count_up(&copy->entry->references);
    copy->count = node->count;
    copy->bytes = node->bytes;
    tree_release(node);
    return copy;
}

/* Keys below `key` go to *low, the others to *high. */
static void tree_split(struct tree_node *tree, struct slice key, struct tree_node **low,
                       struct tree_node **high)
{
    if (!tree) {
        *low = *high = NULL;
        return;
    }
    tree = node_own(tree);
    if (slice_compare(entry_key(tree->entry), key) < 0) {
        *low = tree;
        tree_split(tree->right, key, &tree->right, high);
    } else {
        *high = tree;
        tree_split(tree->left, key, low, &tree->left);
    }
    node_sum(tree);
}

/* One tree from two, all keys of the first being below those of the second. */
static struct tree_node *tree_join(struct tree_node *low, struct tree_node *high)
{
    if (!low) return high;
    if (!high) return low;
    struct tree_node *top;
    if (low->priority >= high->priority) {
        top = node_own(low);
        top->right = tree_join(top->right, high);
    } else {
        top = node_own(high);
        top->left = tree_join(low, top->left);
    }
    node_sum(top);
    return top;
}

/* ---- changes ---- */

static struct tree_node *put_entry(struct tree_node *tree, struct entry *entry, uint32_t priority)
{
    if (!tree) return node_new(entry, priority);
    int order = slice_compare(entry_key(entry), entry_key(tree->entry));
    if (order != 0 && priority > tree->priority) {
        /* The new key belongs above this node, unless the key stands further down: then priority stays as it
         * was. */
        if (!tree_find(tree, entry_key(entry), NULL)) {
            struct tree_node *node = node_new(entry, priority);
            tree_split(tree, entry_key(entry), &node->left, &node->right);
            node_sum(node);
            return node;
        }
        priority = 0;
    }
    tree = node_own(tree);
    if (order == 0) {
        entry_release(tree->entry);
        tree->entry = entry;
    } else if (order < 0) {
        tree->left = put_entry(tree->left, entry, priority);
    } else {
        tree->right = put_entry(tree->right, entry, priority);
    }
    node_sum(tree);
    return tree;
}

struct tree_node *tree_put(struct tree_node *tree, struct slice key, struct slice value,
                           struct random *random)
{
    return put_entry(tree, entry_new(key, value), (uint32_t)random_next(random));
}

static struct tree_node *delete_found(struct tree_node *tree, struct slice key)
{
    tree = node_own(tree);
    int order = slice_compare(key, entry_key(tree->entry));
    if (order == 0) {
        struct tree_node *rest = tree_join(tree->left, tree->right);
        tree->left = tree->right = NULL;
        tree_release(tree);
        return rest;
    }
    if (order < 0) {
        tree->left = delete_found(tree->left, key);
    } else {
        tree->right = delete_found(tree->right, key);
    }
    node_sum(tree);
    return tree;
}

struct tree_node *tree_delete(struct tree_node *tree, struct slice key)
{
    return tree_find(tree, key, NULL) ? delete_found(tree, key) : tree;
}

struct tree_node *tree_delete_range(struct tree_node *tree, struct slice from, struct slice to)
{
    struct tree_node *before, *within, *behind;
    if (slice_compare(from, to) >= 0) return tree;
    tree_split(tree, from, &before, &within);
    tree_split(within, to, &within, &behind);
    tree_release(within);
    return tree_join(before, behind);
}

/* ---- reading ---- */

bool tree_find(const struct tree_node *tree, struct slice key, struct slice *value)
{
    while (tree) {
        int order = slice_compare(key, entry_key(tree->entry));
        if (order == 0) {
            if (value) *value = entry_value(tree->entry);
            return true;
        }
        tree = order < 0 ? tree->left : tree->right;
    }
    return false;
}

bool tree_scan(const struct tree_node *tree, struct slice from, struct slice to, store_visitor visitor,
               void *context)
{
    while (tree) {
        struct slice key = entry_key(tree->entry);
        bool reached = slice_compare(key, from) >= 0;
        if (reached && !tree_scan(tree->left, from, to, visitor, context)) return false;
        if (to.len && slice_compare(key, to) >= 0) return true;
        if (reached && !visitor(context, key, entry_value(tree->entry))) return false;
        tree = tree->right;
    }
    return true;
}

bool tree_scan_backwards(const struct tree_node *tree, struct slice from, struct slice to,
                         store_visitor visitor, void *context)
{
    while (tree) {
        struct slice key = entry_key(tree->entry);
        bool reached = !to.len || slice_compare(key, to) < 0;
        if (reached && !tree_scan_backwards(tree->right, from, to, visitor, context)) return false;
        if (slice_compare(key, from) < 0) return true;
        if (reached && !visitor(context, key, entry_value(tree->entry))) return false;
        tree = tree->left;
    }
    return true;
}

uint64_t tree_count(const struct tree_node *tree)
{
    return tree ? tree->count : 0;
}

uint64_t tree_bytes(const struct tree_node *tree)
{
    return tree ? tree->bytes : 0;
}
