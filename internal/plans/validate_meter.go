package plans

// Check trims white space from both ends of the unit and the name, and returns the errors of the meter,
// or nil if there are no errors.
func (in *PutMeterInput) Check(key string) error {
	var bad faults
	bad.key("key", key)
	bad.name("unit", &in.Unit, true)
	bad.name("name", &in.Name, false)
	bad.must("kind", in.Kind, `"flow" or "level"`, in.Kind == "" || in.Kind == KindFlow || in.Kind == KindLevel)
	return bad.err()
}
