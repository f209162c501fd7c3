"""Word lists of the figures: verbs, participles and riddling phrases. It knows nothing of files."""

import re

IRREGULAR = frozenset(
    """begun bound bought brought broken built caught chosen done drawn driven fed fallen felt forgotten
    fought found given gone grown heard held hidden kept known laid learnt led left lent lost made meant met
    paid proven said seen sent shown shut slept sold spelt spent spoken stood stolen struck sworn swept
    taken taught thought thrown told torn understood undone woken won worn woven written""".split()
)
NOT_ED = frozenset(
    """bed bleed breed embed exceed fastembed feed hundred indeed led need proceed red reembed seed shed shred
    sled speed succeed wed weed""".split()
)
NOT_ING = frozenset(
    """anything beginning binding bring building ceiling embedding encoding everything heading king listing
    logging mapping meaning morning nothing ping ranking rating reasoning ring setting settings sing
    something spring sting string swing thing timing training warning wing""".split()
)
PREDICATES = frozenset("is has was are can may should does must will".split())
VERBS = frozenset(
    """abort accept access acquire activate adapt add adjust adopt advance aggregate align allocate allow alter
    analyse analyze annotate announce answer append apply approximate archive ask assemble assert assign
    associate attach attempt authenticate authorise authorize await bail batch become begin bind block boost
    bootstrap break bring buffer build bump cache calculate call cancel carry cast catch change check choose
    claim clamp classify clean clear click clone close coerce collapse collect combine commit communicate
    compact compare compile complete compose compress compute concatenate configure confirm connect
    construct consume contain continue control convert copy correct count cover crash create cut deal
    deallocate debug decide declare decode decompress decorate decrease decrypt deduplicate default defer
    define delay delegate delete deliver demonstrate deprecate derive describe deserialise deserialize
    detach detect determine differentiate dim disable disallow discard disconnect discover dispatch display
    dispose divide do download drain draw drive drop dump duplicate echo edit eject embed emit empty emulate
    enable encode encrypt end enforce enqueue ensure enter enumerate escape establish estimate evaluate
    evict examine exchange exclude execute exit expand expect expire explain export expose extend extract
    fail fake fall feed fetch fill filter finalise finalize find finish fire fit fix flag flatten flush fold
    follow force forget fork format forward free freeze fuse gate gather generate get give go grab grant
    group grow guarantee guard guess hand handle hang hash have help hide hold hook identify ignore
    implement import improve include increase increment index indicate infer inform inherit initialise
    initialize initiate inject insert inspect install instantiate instruct insulate interpolate interpret
    intersect introduce invalidate invert invoke issue iterate join judge keep kill label launch lay lead
    leave lend let lift limit link list listen load locate lock log look loop lower make manage manipulate
    map mark mask match materialise materialize measure merge migrate mock modify monitor move multiply
    mutate name narrow nest normalise normalize note notify number observe obtain offer omit open operate
    order override overwrite pack pad paginate parse part pass patch pause perform persist pick ping pipe
    place plan plot pop populate post prefetch prepare prepend present preserve prevent print process
    produce promise promote propagate provide prune publish pull purge push put quantise quantize query
    queue quit quote raise rank reach react read rebuild recall receive recognise recognize recommend
    reconnect reconstruct record recover redact redirect reduce reembed refer refill reflect refresh refuse
    register reject relate release reload remember remove rename render repair repeat replace replay report
    represent request require rerank reschedule reserve reset reshape resize resolve respond restart restore
    restrict resume retain retract retrieve retry return reuse reverse revert rewind rewrite roll rotate
    round route run sample sanitise sanitize save say scale scan schedule score scrub search see seed select
    send separate serialise serialize serve set settle setup shift shorten show shuffle shut sign signal
    simulate skip sleep slice snapshot solve sort spawn specify split spool spread stack stage start state
    stem step stop store stream strip stub submit subscribe substitute subtract suggest sum summarise
    summarize supply support suppress swap sweep switch sync synchronise synchronize tag take tear tell
    terminate test throttle throw tie time toggle tokenise tokenize touch trace track train transfer
    transform translate transpose traverse treat trigger trim truncate try tune turn unblock undo unescape
    unify unindex uninstall unlink unlock unpack unquote unregister unset unstage unwrap update upgrade
    upload upsert use validate verify view visit vote wait walk warm warn watch weigh widen wipe withdraw
    work wrap write yield zip""".split()
)
RIDDLES = re.compile(
    r"""\b(?:whoever|whatever|whichever|whence|whereof|thereof|anew|nobody|somebody|someone\selse|no\slonger\sso
    |(?:is|are|was|were|be|been|being)\stold|tells?|told|lets?\sgo|let\sgo\sof|go(?:es|ing)?\son|gone\son|went
    |(?:what|who)\s(?:is|was|are|were|it|he|they|a|the|one|each|may|must|can|has|had|comes?|came|goes|stands?)
    |those\s(?:who|that|which)|is\snone|there\sis\snone|if\sneed\sbe|at\sthe\s(?:most|least)|so\s(?:many|much|long)
    |(?:come|comes|came|becomes|became)\s(?:to|of)|stands?|stood|of\slate|in\sits\sturn|looked\sat|passed\sover
    |nothing\s(?:else|of|is|that)|of\swhich|by\swhich|from\swhich|,\sfor\s(?:it|they|a|an|the|what|who|this|that))\b""",
    re.IGNORECASE | re.VERBOSE,
)


def is_participle(word: str) -> bool:
    """Return whether a word is a past participle or an -ing form."""
    if word.endswith("ed") and len(word) > 3:
        return word not in NOT_ED
    if word.endswith("ing") and len(word) > 4:
        return word not in NOT_ING
    return word in IRREGULAR


def is_named_by_participle(name: str) -> bool:
    """Return whether the first word of a function's name is a participle."""
    first = name.strip("_").lower().partition("_")[0]
    return first not in PREDICATES and first != "test" and is_participle(first)


def has_verb(docstring: str) -> bool:
    """Return whether a docstring begins with a verb in its base form."""
    found = re.match(r"[A-Za-z-]+", docstring.strip())
    return found is not None and found[0].lower().replace("-", "") in VERBS
