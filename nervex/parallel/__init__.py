"""
The same workers on as many processes and machines as there are: ``nervex -m parallel``.

Who does what
    Tasks are handed out by ``nervex.interaction``: the *roster* is a master whose slaves are roles. A *carrier*
    (``nervex.parallel.carrier.Carrier``) is the only part that knows how roles run.
    ``RayCarrier`` makes every role an actor process of Ray; ``InlineCarrier`` runs all of them in this process, in a
    fixed order. The *roles* are built by the functions that build a serial run: ``ActorRole`` (envs, collect mode,
    actor), ``LearnerRole`` (learn mode, learner, the buffers), ``EvaluatorRole``. The *coordinator* runs in the process
    that the user started: it asks the *commander* for tasks, hands them out, and never touches training data.

What travels
    A collect call answers a small header (role, incarnation, sequence number, first and last version of the weights,
    env steps, returns) and one block of stacked columns. The block goes by reference from the actor to the learner, who
    copies it once, into the buffer, and takes every (actor, incarnation, sequence number) once. The learner answers the
    newest weights by reference; they ride on the next collect call, and the actor copies them in place.

Who waits
    On-policy methods go in rounds: all actors collect with the newest weights, then the learner learns from all of it.
    Other methods overlap, within bounds: outstanding collect calls per actor, blocks that wait for the learner, and
    samples learned from per sample inserted, which is that of the same config in serial mode.

What may die
    Everything but what carries the roles, whose end is told at once. A role that dies, or does not get on, is started
    anew beside the others, with another seed; its task is handed out again. A learner goes on from its newest saved
    state. The settings are in ``nervex.parallel.settings``.
"""
