"""The tasks of a beat, whose broker is a folder: each message that is sent is a file."""

from celery import Celery

app = Celery("tasks", broker="filesystem://", broker_transport_options={"data_folder_in": ".", "data_folder_out": "."})
app.conf.beat_schedule = {"tick": {"task": "tasks.tick", "schedule": 0.2}}


@app.task
def tick():
    """Nobody takes the message."""
