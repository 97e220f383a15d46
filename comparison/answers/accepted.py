"""The accepted differences between the answers of kube-apiserver and those of `leaderelect lease-api`."""

from .compare import Accepted

# Below the name and the reason: the place in the answer, and patterns for the scenario, for kube-apiserver's value and for ours.
ACCEPTED = [
    # What every object has.
    Accepted("managed fields", "electors have no use for the managers of fields, so only server-side apply's owners are kept", r".*/managedFields"),
    Accepted("the fencing token", "an annotation has the token, which grows with each term whatever an elector writes",
             r".*/annotations(/leaderelection/token)?", ours="leaderelection/token|^[0-9]+$"),
    Accepted("kinds of items", "each Lease in a list names its kind, as it does alone", r"/body/items/[0-9]+/(kind|apiVersion)", theirs=r"\(missing\)"),
    Accepted("texts", "people read them; clients read the status, the reason and the fields of the causes", r".*/message|/body/details/causes/.*/reason"),
    Accepted("details of nothing", "an answer about no object has no details", r"/body/details", theirs=r"\{\}", ours=r"\(missing\)"),
    Accepted("descriptions of columns", "people read them", r".*/columnDefinitions/[0-9]+/description"),
    # Discovery.
    Accepted("other APIs", "the server has Leases only", r"/body/(groups/[0-9]+.*|serverAddressByClientCIDRs.*|versions.*|resources/[0-9]+/storageVersionHash)", "discovery of the API"),
    Accepted("the version of the server", "it is another program, of which clients compare the numbers alone",
             r"/body/(compiler|emulation.*|git.*|goVersion|minCompatibility.*|platform|buildDate)", "discovery of the API"),
    Accepted("aggregated discovery", "clients fall back to the two requests that it saves, once per process", r"/body/.*|/headers/Content-Type", "aggregated discovery"),
    Accepted("paths outside the API", "each refusal is a Status", r"/body|/headers/Content-Type|/status", "paths that are not there|discovery of the API", theirs="404 page not found|text/plain|401"),
]
