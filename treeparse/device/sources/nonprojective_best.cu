// Best non-projective trees by Gabow and Tarjan's `constrain`, a warp a sentence: the algorithm of
// treeparse/kernels/best/arborescence.py in the same order, on numbers that are rounded in the same way. With any
// number of roots its first part is all, and does what treeparse/kernels/best/contraction.py does.
//
// Keys of arcs into a contracted node are not stored: they are the arcs' own, plus an offset of the word entered, and
// whole numbers are not rounded.
#include "ties.cuh"

enum { BY_WORD, BY_ROOT };  // the two arcs between which a node chooses

using Entry = unsigned short;  // a node's number in a matrix

// Working memory of one sentence. Nodes are the root and the words, then contracted cycles, in order of their making.
// The layout is computed again in treeparse/device/best.py.
struct Graph {
    const double* scores;  // (size, size), head-major
    int n, size, lines;    // words; nodes of the batch; nodes with contracted ones
    double* values;        // (2, lines) the best arcs into every node, from a word outside and from the root
    double* rows;          // of every contracted cycle, in its home's row, the best arc from every node outside
    long long* offsets;    // of every word, what its arcs' keys have more than their own
    int* heads;            // of every node's best arc from a word; in the end of every word
    int* words;            // (2, lines) those that the best arcs enter
    int *choice, *parent, *home, *walk;  // of every node: the arc chosen, its cycle, the word whose row it uses
    int *top, *met;                      // of every word the node it is in now; what `find_cycle` found
    Entry* entries;                      // as the rows: the words entered

    __device__ Graph(const double* scores, int n, int size, double* memory)
        : scores(scores), n(n), size(size), lines(2 * size), values(memory), rows(values + 2 * lines) {
        offsets = reinterpret_cast<long long*>(rows + size * size);
        heads = reinterpret_cast<int*>(offsets + size);
        words = heads + lines;
        choice = words + 2 * lines;
        parent = choice + lines;
        home = parent + lines;
        walk = home + lines;
        top = walk + lines;
        met = top + size;
        entries = reinterpret_cast<Entry*>(top + lines);
    }
    __device__ double score(int i, int j) const { return __ldg(scores + i * size + j); }  // no store can change it
    __device__ double& value(int kind, int node) { return values[kind * lines + node]; }
    __device__ int& word(int kind, int node) { return words[kind * lines + node]; }
    __device__ double* row(int word) { return rows + word * size; }
    __device__ Entry* entries_of(int word) { return entries + word * size; }
    __device__ int head(int kind, int node) { return kind == BY_ROOT ? 0 : heads[node]; }
    __device__ long long key_of(int head, int word) { return arc_key(head, word) + offsets[word]; }
    __device__ long long key(int kind, int node) { return key_of(head(kind, node), word(kind, node)); }
};

// Every word's best arcs from another word and from the root.
__device__ inline void find_word_arcs(Graph& graph) {
    constexpr int ROWS = 8;
    for (int j = lane(); j < graph.lines; j += WARP) graph.parent[j] = 0;
    for (int j = lane(); j <= graph.n; j += WARP) {
        Best best;
        for (int first = 1; first <= graph.n && j > 0; first += ROWS) {
            double scores[ROWS];  // all are loaded before any is looked at
#pragma unroll
            for (int row = 0; row < ROWS; row++) {
                int i = first + row;
                scores[row] = i <= graph.n && i != j ? graph.score(i, j) : -INF;
            }
#pragma unroll
            for (int row = 0; row < ROWS; row++) {
                best.offer(scores[row], first + row, [=](int head) { return arc_key(head, j); });
            }
        }
        graph.value(BY_WORD, j) = best.value;
        graph.heads[j] = best.place;
        graph.value(BY_ROOT, j) = j > 0 ? graph.score(0, j) : 0.0;
        graph.word(BY_WORD, j) = graph.word(BY_ROOT, j) = graph.home[j] = graph.top[j] = j;
        graph.offsets[j] = 0;
    }
    __syncwarp();
}

// Whether any arc into a node is allowed.
__device__ inline bool has_arc(Graph& graph, int node) {
    return graph.value(BY_WORD, node) != -INF || graph.value(BY_ROOT, node) != -INF;
}

// Choose the better of the two arcs into a node.
__device__ inline void choose(Graph& graph, int node) {
    double by_word = graph.value(BY_WORD, node), by_root = graph.value(BY_ROOT, node);
    bool is_root = by_root > by_word;
    if (by_root == by_word) is_root = graph.key(BY_ROOT, node) > graph.key(BY_WORD, node);
    graph.choice[node] = is_root ? BY_ROOT : BY_WORD;
}

// Every lane loads what it is going to merge.
__device__ inline void load_row(Graph& graph, int word) {
    for (int i = lane(); i <= graph.n; i += WARP) {
        graph.row(word)[i] = graph.score(i, word);
        graph.entries_of(word)[i] = word;
    }
}

// Take from every head the better way into a node: so far, by the row of `home`, or by another node of its cycle.
__device__ inline void merge(Graph& graph, int last, int node, int home) {
    double shift = graph.value(BY_WORD, last) - graph.value(BY_WORD, node);
    long long key_shift = graph.key(BY_WORD, last) - graph.key(BY_WORD, node);
    double *row = graph.row(home), *other_row = graph.row(graph.home[node]);
    Entry *entries = graph.entries_of(home), *other_entries = graph.entries_of(graph.home[node]);
    for (int i = lane(); i <= graph.n; i += WARP) {
        double value = other_row[i] + shift;
        bool is_better = value > row[i];
        if (value == row[i] && value > -INF) {
            is_better = graph.key_of(i, other_entries[i]) + key_shift > graph.key_of(i, entries[i]);
        }
        if (is_better) {
            row[i] = value;
            entries[i] = other_entries[i];
        }
    }
    __syncwarp();
    for (int word = 1 + lane(); word <= graph.n; word += WARP) {
        if (graph.top[word] == node) graph.offsets[word] += key_shift;
    }
    __syncwarp();
}

// Forbid arcs from the words of the nodes that are now in a new one, and find the best arcs into it.
__device__ inline void enclose(Graph& graph, int node, int home) {
    double* row = graph.row(home);
    for (int word = 1 + lane(); word <= graph.n; word += WARP) {
        if (graph.parent[graph.top[word]] == node) {
            graph.top[word] = node;
            row[word] = -INF;
        }
    }
    const Entry* entries = graph.entries_of(home);
    auto key_of = [&](int i) { return graph.key_of(i, entries[i]); };
    Best best;
    for (int i = 1 + lane(); i <= graph.n; i += WARP) best.offer(row[i], i, key_of);
    best.reduce(key_of);
    if (lane() == 0) {
        graph.home[node] = home;
        graph.value(BY_WORD, node) = best.value;
        graph.heads[node] = best.place;
        graph.word(BY_WORD, node) = entries[best.place];
        graph.value(BY_ROOT, node) = row[0];
        graph.word(BY_ROOT, node) = entries[0];
    }
    __syncwarp();
}

// Contract the cycle through node `last` into a new node.
__device__ inline void contract(Graph& graph, int last, int node) {
    int home = graph.home[last];
    if (last <= graph.n) load_row(graph, last);
    if (lane() == 0) graph.parent[last] = node;
    for (int inside = graph.top[graph.heads[last]]; inside != last; inside = graph.top[graph.heads[inside]]) {
        if (inside <= graph.n) load_row(graph, inside);
        merge(graph, last, inside, home);
        if (lane() == 0) graph.parent[inside] = node;
    }
    __syncwarp();
    enclose(graph, node, home);
}

// Go on with the walk of word `first` at a node, then with the next words'; the first node met again, or 0. A walk
// follows the chosen arcs upwards to what an earlier walk has been to.
__device__ inline int find_cycle(Graph& graph, int& first, int node) {
    if (lane() == 0) {
        while (true) {
            while (graph.walk[node] == 0) {
                graph.walk[node] = first;
                node = graph.top[graph.head(graph.choice[node], node)];
            }
            if (graph.walk[node] == first) break;
            node = 0;
            if (first == graph.n) break;
            node = graph.top[++first];
        }
        graph.met[0] = first;
        graph.met[1] = node;
    }
    __syncwarp();
    first = graph.met[0];
    return graph.met[1];
}

// Contract cycles of chosen arcs until there are none; the number of nodes, or 0 if there is no tree.
__device__ inline int contract_cycles(Graph& graph, int count) {
    for (int node = lane(); node < graph.lines; node += WARP) graph.walk[node] = node == 0 ? -1 : 0;
    __syncwarp();
    int first = 1;
    for (int node = graph.top[1];;) {
        node = find_cycle(graph, first, node);
        if (node == 0) return count;
        contract(graph, node, count);
        node = count++;
        if (lane() == 0) choose(graph, node);
        if (!has_arc(graph, node)) return 0;
    }
}

// How many nodes hang from the root, and which loses least by its best arc from a word; 0 if none has one.
__device__ inline int cheapest_swap(Graph& graph, int& roots) {
    auto key_of = [&](int word) {
        return graph.key(BY_WORD, graph.top[word]) - graph.key(BY_ROOT, graph.top[word]);
    };
    Best best;
    roots = 0;
    for (int first = 1; first <= graph.n; first += WARP) {
        int word = first + lane(), node = word <= graph.n ? graph.top[word] : 0;
        bool is_root = node > 0 && graph.home[node] == word && graph.choice[node] == BY_ROOT;
        roots += __popc(__ballot_sync(ALL_LANES, is_root));
        if (is_root) best.offer(graph.value(BY_WORD, node) - graph.value(BY_ROOT, node), word, key_of);
    }
    best.reduce(key_of);
    return graph.top[best.place];
}

// Choose an arc into every node; the number of nodes, or 0 if there is no tree.
__device__ inline int solve(Graph& graph, bool single_root) {
    find_word_arcs(graph);
    bool exists = true;
    for (int j = 1 + lane(); j <= graph.n; j += WARP) {
        choose(graph, j);
        exists = exists && has_arc(graph, j);
    }
    if (!__all_sync(ALL_LANES, exists)) return 0;
    for (int count = graph.n + 1;;) {
        count = contract_cycles(graph, count);
        if (count == 0 || !single_root) return count;
        int roots, node = cheapest_swap(graph, roots);
        if (roots == 1) return count;
        if (node == 0) return 0;
        if (lane() == 0) graph.choice[node] = BY_WORD;
    }
}

// Open the contracted nodes, the last one first; the arc into a node replaces an arc of each cycle within.
__device__ inline void expand(Graph& graph, int count) {
    int *covered = graph.walk, *found = graph.top;
    for (int node = lane(); node < count; node += WARP) covered[node] = 0;
    __syncwarp();
    if (lane() == 0) {
        for (int node = count - 1; node > 0; node--) {
            if (covered[node]) continue;
            int choice = graph.choice[node], word = graph.word(choice, node);
            found[word] = graph.head(choice, node);
            for (int inside = word; inside != node; inside = graph.parent[inside]) covered[inside] = 1;
        }
    }
    __syncwarp();
}

KERNEL nonprojective_best_trees(const double* scores, const long long* lengths, long long items, long long size,
                                long long single_root, double* work, long long area, long long* heads) {
    double* memory = block_memory(work, warps() * area) + warp() * area;
    for (long long b = blockIdx.x * warps() + warp(); b < items; b += gridDim.x * warps()) {
        Graph graph(scores + b * size * size, int(lengths[b]), int(size), memory);
        int count = graph.n > 0 ? solve(graph, single_root) : 0;
        if (count > 0) expand(graph, count);
        for (int j = lane(); j < size; j += WARP) {
            heads[b * size + j] = count > 0 && 1 <= j && j <= graph.n ? graph.top[j] : -1;
        }
        __syncwarp();  // lanes that find no tree are done first
    }
}
