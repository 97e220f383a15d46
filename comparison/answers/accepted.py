"""The accepted differences between the answers of kube-apiserver and those of `leaderelect lease-api`."""

from .compare import Accepted

MISSING = r"^\(missing\)$"

# Below the name and the reason: the place in the answer, and patterns for the scenario, for kube-apiserver's value and for ours.
ACCEPTED = [
    # What every object has.
    Accepted("managed fields", "electors have no use for the managers of fields, so only their values are compared", r".*/managedFields"),
    Accepted("the fencing token", "an annotation has the token, which grows with each term whatever an elector writes",
             r".*/annotations(/leaderelection/token)?", ours="leaderelection/token|^[0-9]+$"),
    Accepted("kinds of items", "each Lease in a list names its kind, as it does alone", r"/body/items/[0-9]+/(kind|apiVersion)", theirs=MISSING),
    Accepted("texts", "people read them; clients read the status, the reason and the fields of causes", r".*/message|/body/details/causes/.*/reason|/body/status/reason"),
    Accepted("details of refusals", "an answer names the Lease that it is about, and no options", r"/body/details", theirs=r"^\{\}$|Options|causes|leases", ours=MISSING),
    Accepted("one cause of several", "a refusal names the first thing that is wrong, and a whole field", r"/body/details/causes(/.*)?", ours=r"missing|^metadata\.(ownerReferences|name)$"),
    Accepted("an empty name", "a refusal of a Lease without a name says so", r"/body/details/name", ours="^$|^A_"),
    Accepted("an empty reason", "an error without a reason says so", r"/body/reason", theirs=MISSING, ours="^$"),
    Accepted("descriptions of columns", "people read them", r".*/columnDefinitions/[0-9]+/description"),
    Accepted("versions of tables without objects", "kubectl asks for objects", r"/body/metadata/resourceVersion", "columns of a table", ours="^$"),
    Accepted("generations", "nothing counts the generations of a Lease", r"/body/metadata/generation", ours=MISSING),
    Accepted("generateName", "the name is kept, and not how it was made", r"/body/metadata/generateName", ours=MISSING),
    Accepted("warnings", "a client that wants to know of unknown fields asks with Strict, and gets an error", r"/headers/Warning", ours="^None$"),
    Accepted("versions and UIDs of what was not accepted", "later objects of a scenario have other numbers if one was accepted by one server alone",
             r"/body/(items/[0-9]+/)?metadata/(resourceVersion|uid)", "leaseDurationSeconds|labels|label selectors|owners|strategic|server-side|finalizers"),
    Accepted("versions of dry runs", "a dry run shows the version that it would replace, or one that is used by nobody",
             r"/body/metadata/resourceVersion", "dry run|options of a patch|unknown fields|stand twice|field managers|finalizers|owners"),
    # Discovery.
    Accepted("other APIs", "the server has Leases only", r"/body/(groups/[0-9]+.*|serverAddressByClientCIDRs.*|versions.*|resources/[0-9]+/storageVersionHash)", "discovery of the API"),
    Accepted("the version of the server", "it is another program, of which clients compare the numbers alone",
             r"/body/(compiler|emulation.*|git.*|goVersion|minCompatibility.*|platform|buildDate)", "discovery of the API"),
    Accepted("aggregated discovery", "clients fall back to the two requests that it saves, once per process", r"/body/.*|/headers/Content-Type", "aggregated discovery"),
    Accepted("paths outside the API", "each refusal is a Status", r"/body|/headers/Content-Type", "paths that are not there|media types of a read", theirs="404 page|text/plain|406"),
    Accepted("forms", "YAML is read and not written, as no elector reads it; protobuf is answered with JSON", r"/status|/body|/headers/Content-Type", "media types|reads of a Lease|forms of a list", ours="^406|NotAcceptable|json"),
    Accepted("one object as a list", "a client that takes PartialObjectMetadata gets the list of it", r"/status|/body/.*", "forms of a list", theirs="^406", ours="^200"),
    # Values.
    Accepted("the longest lease", "a lease above a day is a mistake in the unit", r"/status", "leaseDurationSeconds", ours="at most a day"),
    Accepted("the largest body", "an elector's Lease has a kilobyte; larger bodies cost other tenants their time", r"/status", "annotations", ours="^413"),
    Accepted("finalizers", "nothing would wait for them", r"/status|/body/.*finalizers", "finalizers|strategic", ours="422|missing"),
    Accepted("strict types of what is not kept", "a value of another type is left out where no elector has one", r"/status", "strategy|preferredHolder|namespaces|labels|names", theirs="^(400|201|409|422)"),
    Accepted("a prefix of a label", "prefixes are compared as they are", r"/status", "labels", theirs="prefix part", ours="^201"),
    Accepted("owners", "nothing collects a Lease whose owner is gone; their fields are checked, and not their groups", r"/status|/body/metadata/ownerReferences/[0-9]+", "owners"),
    Accepted("versions are text", "a version of a store is no number, so an unknown one is an old one", r"/status", "version|lists|watches", theirs="ParseUint|resource version", ours="^(200|409)"),
    Accepted("empty options", "an option without a value is one that is not there", r"/status", "dry runs", theirs=r'\[""\]', ours="^201"),
    Accepted("other reasons of one refusal", "both refuse, with another status", r"/status", "", theirs="^(400|422|500)", ours="^(400|403|409|422)"),
    # Writes.
    Accepted("a write that is sent twice", "a balancer sends a write again; one that has landed is no error for its sender", r"/status", "creation|kinds|namespaces", theirs="^409 AlreadyExists", ours="^201"),
    Accepted("a live holder", "who has not read the holder's last renewal does not take its lease", r"/status|/body/spec/.*", "live holder|server-side", ours="^409|holder|[0-9]|Apply failed"),
    Accepted("a Lease that was deleted", "a version of what is gone is out of date, and creates nothing", r"/status", "not there", theirs="^201", ours="^409"),
    Accepted("force", "it is asked for with every patch that may take a live lease", r"/status", "options of a patch", theirs="force: Forbidden", ours="^200"),
    Accepted("deletionTimestamp", "a Lease is deleted at once, so it has none to change", r"/status", "read only", ours="^200"),
    Accepted("how to delete", "a Lease is deleted at once, whatever its dependents are, and whatever else the body says", r"/status|/body/.*", "options of a deletion|bodies of a deletion"),
    Accepted("what is not a Lease", "the body of another kind is refused as such", r"/status", "bodies|kinds", theirs="^422|^400", ours="^400|^404"),
    # Lists and watches.
    Accepted("a continued page", "a token that was used twice goes on from the same place", r"/body/metadata/continue", "pages"),
    Accepted("empty values of a selector", "no label has none of no values", r"/body/items/.*", "label selectors"),
    Accepted("any form of an application", "application/* takes JSON", r"/status", "media types of a read", theirs="^406", ours="^200"),
    Accepted("versions of bookmarks", "a bookmark has the version of the listing behind it, and one comes at the end of a watch, too",
             r"/body/[12](/object/(spec|metadata/resourceVersion))?", "initial events|cannot be right"),
    Accepted("the old path of watches", "clients have asked with a parameter since 2018", r"/status", "watch of one Lease", ours="^404"),
    Accepted("old versions of a watch", "a version that no Lease has is an old one: the client lists anew", r"/body/.*", "watches that cannot be right", ours="ERROR|410|Status|v1|missing|Expired|Failure"),
    # People.
    Accepted("wrong tokens", "a token that is not known is refused, and nobody is anonymous", r"/status", "wrong tokens", ours="^401"),
    Accepted("other people", "nobody acts for another here", r"/status", "other people", ours="^403"),
    Accepted("who I am", "a token is a name in a file of the server's, and no user", r"/status|/body/metadata", "who may", ours="404|missing"),
]
