"""Each file of a capture is read by a run of its own; those that still wait to be read get one."""

import django.db.models.deletion
from django.db import migrations, models


def one_part_per_file(apps, schema_editor):
    run_model = apps.get_model("profiling", "Run")
    unfinished = ["queued", "running"]
    for row in apps.get_model("profiling", "TraceFile").objects.select_related("trace__run"):
        parent = row.trace.run
        if parent.status in unfinished:
            row.run = run_model.objects.create(task="profiling.read", parent=parent)
        else:
            row.run = run_model.objects.create(task="profiling.read", parent=parent, status="done")
        row.save(update_fields=["run"])


class Migration(migrations.Migration):
    dependencies = [("profiling", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="parent",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="parts",
                to="profiling.run",
                verbose_name="part of",
            ),
        ),
        migrations.AddField(
            model_name="tracefile",
            name="run",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="files", to="profiling.run"
            ),
        ),
        migrations.RunPython(one_part_per_file, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="tracefile",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="files", to="profiling.run"
            ),
        ),
        migrations.CreateModel(
            name="StoredReading",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="reading",
                        serialize=False,
                        to="profiling.run",
                    ),
                ),
                ("data", models.BinaryField()),
            ],
            options={"verbose_name": "stored reading", "verbose_name_plural": "stored readings"},
        ),
    ]
