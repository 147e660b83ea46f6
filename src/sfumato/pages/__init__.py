"""Pages that people look at: server-rendered, live where something happens, without any framework.

A page shows a *subject*, a task or a released stream, and knows nothing of where it comes from. All
that a visitor can choose is in the query of its address; a script only fetches the same address
again and puts the parts that have changed in place.
"""
