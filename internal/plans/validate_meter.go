package plans

// Check takes the white space off both ends of the unit and the name. It is what is wrong with a meter,
// nil if nothing is.
func (in *PutMeterInput) Check(key string) error {
	var bad faults
	bad.key("key", key)
	bad.name("unit", &in.Unit, true)
	bad.name("name", &in.Name, false)
	bad.must("kind", in.Kind, `"flow" or "level"`, in.Kind == "" || in.Kind == KindFlow || in.Kind == KindLevel)
	return bad.err()
}
