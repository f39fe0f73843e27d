SELECT {incarnation}
